# Packages by apt or dnf. What an install brought beside the asked packages is listed in $L/packages, new users and
# groups in $L/accounts; both go with the last package that needs them.
apt="apt-get -y -q -o DPkg::Lock::Timeout=600 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold"

manager() { if command -v apt-get >/dev/null 2>&1; then echo apt; else echo dnf; fi; }
package_names() { # all that are installed
  case $(manager) in
    apt) dpkg-query -W -f '${Package} ${db:Status-Status}\n' | sed -n 's/ installed$//p' ;;
    *) rpm -qa --qf '%{NAME}\n' ;;
  esac
}
look_package() { # NAME
  answer=$(bulk_package "$1") && answer=$nl$answer || return 1
  case $answer in
    *"$nl$1 "*" installed")
      rest=${answer#*"$nl$1 "}
      kv installed yes && kv version "${rest%% *}"
      case $answer in *" hold installed") kv hold yes ;; *) kv hold no ;; esac
      ;;
    *) kv installed no ;;
  esac
}
package_is_there() { # NAME VERSION(may be empty)
  seen=$(look_package "$1")
  case $nl$seen$nl in
    *"${nl}installed=yes$nl"*) [ -z "$2" ] || case $nl$seen$nl in *"${nl}version=$2$nl"*) ;; *) return 1 ;; esac ;;
    *) return 1 ;;
  esac
}
account_names() { sed 's/^\([^:]*\):.*/u \1/' /etc/passwd && sed 's/^\([^:]*\):.*/g \1/' /etc/group; }
lock_holder() { # → $pid: who holds the package lock
  for f in /var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/rpm/.rpm.lock; do
    [ -e "$f" ] || continue
    ino=$(stat -c %i "$f")
    pid=$(sed -n "s/.* \([0-9][0-9]*\) [^ ]*:$ino .*/\1/p" /proc/locks | head -n 1)
    [ -z "$pid" ] || return 0
  done
  return 1
}
package_turn() { # waits for the lock, saying whose it is; dpkg itself would not wait
  left=600
  if lock_holder; then
    note "waits for the package lock held by $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null || echo a process)(pid $pid)"
    while [ $left -gt 0 ] && lock_holder; do sleep 1 && left=$((left - 1)); done
  fi
  mend_packages
}
mend_packages() { # a killed dpkg leaves half-done work that stops every later call of apt
  [ "$(manager)" = apt ] || return 0
  if [ -n "$(ls /var/lib/dpkg/updates)" ] || [ -n "$(dpkg --audit)" ]; then
    # What it was unpacking is unpacked anew: to remove it would leave half of its files.
    dpkg --configure -a --force-confdef --force-confold >"$L/log" 2>&1 && [ -z "$(dpkg --audit)" ] ||
      quietly $apt install --fix-broken --no-install-recommends --no-remove || return 1
  fi
  # Its working folder is cleared by the next install only, and there may be none.
  lock_holder || rm -rf /var/lib/dpkg/tmp.ci
}
# A package manager that writes to a connection which is gone would die in the middle of its work.
quietly() { # COMMAND…: its last lines, if it fails
  "$@" >"$L/log" 2>&1 || {
    code=$?
    tail -n 20 "$L/log"
    return $code
  }
}
fetch_packages() { # NAME[=VERSION]…
  case $(manager) in
    apt)
      more="--no-install-recommends --allow-downgrades --allow-change-held-packages"
      # shellcheck disable=SC2086
      quietly $apt install $more "$@" || { quietly $apt update && quietly $apt install $more "$@"; }
      ;;
    *)
      for wanted; do
        shift
        case $wanted in *=*) set -- "$@" "${wanted%%=*}-${wanted#*=}" ;; *) set -- "$@" "$wanted" ;; esac
      done
      quietly dnf -y install "$@" || quietly yum -y install "$@"
      ;;
  esac
}
install_packages() { # NAME[=VERSION]…
  package_turn || return 1
  note_new && package_names | sort -u >"$L/before.packages" && account_names | sort -u >"$L/before.accounts" || return 1
  cp -f /var/lib/apt/extended_states "$L/before.marks" 2>/dev/null || : >"$L/before.marks"
  if fetch_packages "$@"; then note_new; else
    # What came is ours all the same, and what somebody else installs before the next try is not.
    if mend_packages >/dev/null 2>&1; then note_new; fi
    return 1
  fi
}
is_kept() { # NAME: in the version it has, by dnf's plugin or by dnf 5
  grep -qs "^!\{0,1\}$1-[0-9][0-9]*:" /etc/dnf/plugins/versionlock.list || grep -qsx "name = \"$1\"" /etc/dnf/versionlock.toml
}
tell_kept() { # rows of rpm's packages, like those of apt
  while read -r name version want status; do
    if is_kept "$name"; then want=hold; fi
    printf '%s %s %s %s\n' "$name" "$version" "$want" "$status"
  done
}
hold_package() { # NAME yes|no
  case $(manager)-$2 in
    apt-yes) apt-mark hold "$1" >/dev/null ;;
    apt-*) apt-mark unhold "$1" >/dev/null ;;
    dnf-yes)
      quietly dnf -q versionlock add "$1" || {
        say "dnf holds a version with its plugin only: install python3-dnf-plugin-versionlock first"
        return 1
      }
      ;;
    *) if is_kept "$1"; then quietly dnf -q versionlock delete "$1"; fi ;;
  esac
}
install_missing() { # NAME[=VERSION]…: those that are not there, in one go
  missing=
  for wanted in "$@"; do
    case $wanted in
      *=*) package_is_there "${wanted%%=*}" "${wanted#*=}" ;;
      *) package_is_there "$wanted" '' ;;
    esac || missing="$missing $wanted"
  done
  # shellcheck disable=SC2086
  [ -z "$missing" ] || install_packages $missing
}
note_new() { # remember what came along with an install, also with one that was cut off before it could
  [ -f "$L/before.accounts" ] || return 0
  for name in $(package_names | sort -u | comm -13 "$L/before.packages" -); do
    grep -qsxF "package $name" "$L"/*/id || printf '%s\n' "$name" >>"$L/packages" || return 1
  done
  # What had to give way, like one keeper of the time to another.
  for name in $(package_names | sort -u | comm -23 "$L/before.packages" -); do
    mark=manual
    if sed -n "/^Package: $name\$/,/^\$/p" "$L/before.marks" | grep -qx 'Auto-Installed: 1'; then mark=auto; fi
    printf '%s %s\n' "$name" $mark >>"$L/gave-way" || return 1
  done
  account_names | sort -u | comm -13 "$L/before.accounts" - >>"$L/accounts" &&
    rm -f "$L/before.accounts"
}
removal_of() { # NAME…: what apt would remove
  # shellcheck disable=SC2068
  $apt -s purge $@ 2>/dev/null | sed -n 's/^Purg \([^ :]*\).*/\1/p'
}
purge() { # NAME…
  package_turn || return 1
  case $(manager) in
    # shellcheck disable=SC2086
    apt) quietly $apt purge "$@" ;;
    *) quietly dnf -y --setopt=clean_requirements_on_remove=False remove "$@" || quietly yum -y remove "$@" ;;
  esac
}
own_name() { # NAME: that of the package which is there for it
  name=
  if [ "$(manager)" != apt ] && ! rpm -q -- "$1" >/dev/null 2>&1; then name=$(provided_package "$1" '%{NAME}'); fi
  printf '%s\n' "${name:-$1}"
}
undo_package() { # NAME [pinned]: it goes at the end of the run, together with the others
  # Of an install that was cut off, nobody noted yet what came along.
  if [ -f "$L/before.accounts" ]; then package_turn && note_new || return 1; fi
  if [ "$(was installed)" = no ]; then
    if package_is_there "$1" ''; then hold_package "$1" no || return 1; fi
    own_name "$1" | tee -a "$L/packages" >>"$L/packages.due"
    return
  fi
  package_is_there "$1" '' || return 0
  ours=$(sed -n 's/^version=//p' made 2>/dev/null) || :
  # Somebody else's upgrade stays.
  if [ "${2:-}" = pinned ] && [ "$ours" != "$(was version)" ] && package_is_there "$1" "$ours"; then
    install_packages "$1=$(was version)" || note "package $1 stays at $ours: $(was version), which was there before, cannot be had"
  fi
  hold_package "$1" "$(was hold)"
}
needing() { # NAMES: installed packages of rpm that cannot be without them
  # shellcheck disable=SC2086
  rpm -e --test -- $1 2>&1 | sed -n 's/.* is needed by (installed) //p' | while read -r full; do rpm -q --qf '%{NAME}\n' -- "$full"; done
}
needed_by() { # NAMES SET: who outside of SET would have to go with them
  case $(manager) in apt) others=$(removal_of "$1") ;; *) others=$(needing "$1") ;; esac
  for other in $others; do
    case " $2 " in *" $other "*) ;; *) printf '%s\n' "$other" && return ;; esac
  done
}
bring_back() { # NAME: without any other going for it
  case $(manager) in
    apt)
      more="--no-install-recommends --no-remove"
      # shellcheck disable=SC2086
      quietly $apt install $more "$1" || { quietly $apt update && quietly $apt install $more "$1"; }
      ;;
    *) quietly dnf -y install "$1" || quietly yum -y install "$1" ;;
  esac
}
sweep_packages() { # what we brought and nobody asks for any more; what others need stays
  # To ask apt about each takes seconds: what came along with others is judged when the last of them goes.
  if [ -f "$L/packages" ] && [ -f "$L/packages.due" ]; then
    judged=$(if grep -qs '^package ' "$L"/*/id; then sort -u "$L/packages.due"; else sort -u "$L/packages"; fi)
    going= waiting=
    for name in $judged; do
      if package_is_there "$name" ''; then going="$going $name"; fi
    done
    blocked=$going
    while [ -n "$blocked" ] && [ -n "$going" ]; do
      blocked=
      # shellcheck disable=SC2086
      [ -n "$(needed_by "$going" "$going")" ] || break
      for name in $going; do
        other=$(needed_by "$name" "$going")
        [ -n "$other" ] || continue
        blocked="$blocked $name"
        if grep -qsxF "package $other" "$L"/*/id; then waiting="$waiting $name"; else note "kept package $name: $other needs it"; fi
      done
      left=
      for name in $going; do case "$blocked " in *" $name "*) ;; *) left="$left $name" ;; esac; done
      going=$left
    done
    # shellcheck disable=SC2086
    if [ -n "$going" ]; then purge $going 2>&1 || return 1; fi
    { printf '%s\n' "$judged" | grep -vxF -f - "$L/packages"; printf '%s\n' $waiting; } | grep . | sort -u >"$L/packages.new"
    mv -f "$L/packages.new" "$L/packages" && [ -s "$L/packages" ] || rm -f "$L/packages"
    rm -f "$L/packages.due"
  fi
  grep -qs '^package ' "$L"/*/id && return 0
  if [ -f "$L/gave-way" ]; then
    sort -u "$L/gave-way" | while read -r name mark; do
      if package_is_there "$name" ''; then continue; fi
      if bring_back "$name" </dev/null; then
        if [ "$(manager)" = apt ]; then apt-mark "$mark" "$name" >/dev/null; fi
      else note "package $name, which had to give way to ours, could not be installed again"; fi
    done
    rm -f "$L/gave-way"
  fi
  if [ -f "$L/accounts" ]; then
    while read -r kind name; do
      case $kind in
        u) if getent passwd "$name" >/dev/null; then userdel "$name" >/dev/null 2>&1 || note "kept user $name"; fi ;;
        g) if getent group "$name" >/dev/null; then groupdel "$name" >/dev/null 2>&1 || note "kept group $name"; fi ;;
      esac
    done <"$L/accounts"
    rm -f "$L/accounts"
  fi
}
