# Looks at many things of one kind with one program each; what they print is read by provider/bulk.ts.
bulk_path() { # PATH…: only of what exists, so that any complaint is a real one
  for path in "$@"; do
    shift
    if [ -e "$path" ] || [ -L "$path" ]; then set -- "$@" "$path"; fi
  done
  [ $# -gt 0 ] || return 0
  stat -c 'meta %f %a %U/%G %n' -- "$@" || return 1
  for path in "$@"; do
    shift
    if [ -f "$path" ] && [ ! -L "$path" ]; then set -- "$@" "$path"; fi
  done
  [ $# -eq 0 ] || sha256sum -- "$@"
}
bulk_sysctl() { # PATH…
  for path in "$@"; do
    shift
    if [ -e "$path" ]; then set -- "$@" "$path"; fi
  done
  [ $# -eq 0 ] || grep -H '' -- "$@"
}
bulk_parameter() { # PATH…: in a container, only what it may write itself
  for path in "$@"; do
    shift
    if [ -w "$path" ]; then set -- "$@" "$path"; fi
  done
  [ $# -eq 0 ] || grep -H '' -- "$@"
}
learned_units=${given_units:-}
bulk_unit() { # COUNT NAME…: blocks in the order of the names, of those after the first COUNT only where they may be active
  left=$1
  shift
  for name; do
    shift
    if [ "$left" -gt 0 ] || unit_may_be_active "${name%.service}"; then set -- "$@" "$name"; fi
    left=$((left - 1))
  done
  [ $# -gt 0 ] || return 0
  # Kept for who else goes by one of them; the last for look_nofile.
  learned_units=$(show_units "$@" rescue.service) && printf '%s\n' "$learned_units"
}
bulk_package() { # NAME…
  case $(manager) in
    # It says "no packages found" with 1 when some are not known; anything worse is an error.
    apt) dpkg-query -W -f '${Package} ${Version} ${db:Status-Want} ${db:Status-Status}\n' -- "$@" 2>/dev/null || [ $? = 1 ] ;;
    *)
      # Of a database that it cannot open, rpm says that nothing is installed.
      rows=$(rpm -q --qf '%{NAME} %{VERSION}-%{RELEASE} install installed\n' -- "$@") ||
        { [ $? -le $# ] && rpm -q rpm >/dev/null; } || return 1
      printf '%s\n' "$rows" | tell_kept
      for name; do
        case $nl$rows in *"$nl$name "*) ;; *) provided_package "$name" "$name %{VERSION}-%{RELEASE} install installed" | tell_kept ;; esac
      done
      ;;
  esac
}
provided_package() { # NAME FORMAT: of rpm packages that are installed, the one that stands in for this one
  rpm -q --qf "$2\n" --whatprovides -- "$1" 2>/dev/null | sed -n '/^no package provides /!p' | head -n 1
}
