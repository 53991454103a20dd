# Packages by apt or dnf. What an install brought beside the asked packages is listed in $L/packages, new users and
# groups in $L/accounts; both go with the last package that needs them.
apt="apt-get -y -q -o DPkg::Lock::Timeout=600 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold"

by_apt() { command -v apt-get >/dev/null 2>&1; }
manager() { if by_apt; then echo apt; else echo dnf; fi; }
package_rows() { # all that are known, each with its state
  case $(manager) in
    apt) dpkg-query -W -f '${Package} ${db:Status-Status}\n' ;;
    *) rpm -qa --qf '%{NAME} installed\n' ;;
  esac
}
list_packages() { # FILE: those that are installed; no host has none, so an empty list is a failure, too
  package_rows >"$L/rows" && sed -n 's/ installed$//p' "$L/rows" | sort -u >"$1" && [ -s "$1" ]
}
look_package() { # NAME
  answer=$(bulk_package "$1") && answer=$nl$answer || return 1
  case $answer in
    *"$nl$1 "*" installed")
      rest=${answer#*"$nl$1 "}
      kv installed yes && kv version "${rest%% *}"
      case $answer in *" hold installed") kv hold yes ;; *) kv hold no ;; esac
      ;;
    *"$nl$1 "*" config-files") kv installed no && kv configuration yes ;;
    *) kv installed no ;;
  esac
}
package_is_there() { # NAME VERSION(may be empty); 2: that cannot be told
  seen=$(look_package "$1") || return 2
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
  mend_packages && end_install
}
mend_packages() { # a killed dpkg leaves half-done work that stops every later call of apt
  by_apt || return 0
  if [ -n "$(ls /var/lib/dpkg/updates)" ] || [ -n "$(dpkg --audit)" ]; then
    end_removals || return 1
    configured=yes
    dpkg --configure -a --force-confdef --force-confold >"$L/log" 2>&1 || configured=
    # apt takes what it read in the same second for new.
    rm -f /var/cache/apt/pkgcache.bin
    # What it was unpacking is unpacked anew: to remove it would leave half of its files.
    [ -n "$configured" ] && [ -z "$(dpkg --audit)" ] ||
      quietly $apt install --fix-broken --no-install-recommends --no-remove || return 1
  fi
  # Its working folder is cleared by the next install only, and there may be none.
  lock_holder || rm -rf /var/lib/dpkg/tmp.ci
}
end_removals() { # that dpkg was killed over: apt would want leave to remove others, too
  # One half installed that need not be installed anew was being removed, whatever apt says afterwards that it wants of it.
  half='ok half-installed'
  end_removal --purge "s/^purge \($half\|ok half-configured\|ok unpacked\) //p" &&
    end_removal --remove "s/^\([a-z]* $half\|deinstall ok half-configured\|deinstall ok unpacked\) //p"
}
end_removal() { # ACTION SED: which of the packages
  names=$(dpkg-query -W -f '${db:Status-Want} ${db:Status-Eflag} ${db:Status-Status} ${binary:Package}\n' | sed -n "$2")
  # shellcheck disable=SC2086
  [ -z "$names" ] || quietly dpkg "$1" $names
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
      quietly dnf -y install "$@" || {
        code=$?
        [ $code -le 128 ] || return $code
        quietly yum -y install "$@"
      }
      ;;
  esac
}
note_before() { # NAME[=VERSION]…: what is there before an install, so that it can be told what came; valid with the accounts
  list_packages "$L/before.packages" && sed -n 's/ config-files$//p' "$L/rows" >"$L/before.configs" &&
    printf '%s\n' "$@" >"$L/before.asked" && account_names >"$L/rows" && sort -u "$L/rows" >"$L/before.accounts.new" &&
    grep -qx 'u root' "$L/before.accounts.new" || {
    say "what there is before an install could not be listed"
    return 1
  }
  cp -f /var/lib/apt/extended_states "$L/before.marks" 2>/dev/null || : >"$L/before.marks"
  synced "$L"/before.* && mv -f "$L/before.accounts.new" "$L/before.accounts" && synced "$L"
}
synced() { # FILE…: those that are there, safe from a power cut
  for file; do
    shift
    if [ -e "$file" ]; then set -- "$@" "$file"; fi
  done
  sync -- "$@" 2>/dev/null || sync
}
install_packages() { # NAME[=VERSION]…
  package_turn && note_new && note_before "$@" || return 1
  if fetch_packages "$@"; then
    note_new
    return
  else failed=$?; fi
  # A dnf that was killed is for the next turn.
  [ $failed -le 128 ] || by_apt || return 1
  # What came is ours all the same, and what somebody else installs before the next try is not.
  if mend_packages >/dev/null 2>&1; then note_new; fi
  return 1
}
end_install() { # dnf knows nothing of the files it was unpacking when it was killed; with the package they are known
  ! by_apt && [ -f "$L/before.accounts" ] && [ -s "$L/before.asked" ] || return 0
  # shellcheck disable=SC2046
  set -- $(missing_of $(cat "$L/before.asked"))
  [ $# = 0 ] || fetch_packages "$@" || note "the install of $* was cut off and cannot be ended: files of it may stay"
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
missing_of() { # NAME[=VERSION]…: those that are not there
  for wanted in "$@"; do
    case $wanted in
      *=*) package_is_there "${wanted%%=*}" "${wanted#*=}" ;;
      *) package_is_there "$wanted" '' ;;
    esac || printf '%s\n' "$wanted"
  done
}
install_missing() { # NAME[=VERSION]…: those that are not there, in one go
  missing=$(missing_of "$@")
  # shellcheck disable=SC2086
  [ -z "$missing" ] || install_packages $missing
}
note_new() { # remember what came along with an install, also with one that was cut off before it could
  [ -f "$L/before.accounts" ] || return 0
  # Lists that a power cut emptied would make everything ours.
  if ! [ -s "$L/before.packages" ] || ! grep -qx 'u root' "$L/before.accounts"; then
    note "what an install that was cut off brought along is not known, and stays"
    rm -f "$L/before.accounts"
    return
  fi
  list_packages "$L/now" && note_brought && note_gave_way && account_names >"$L/rows" && sort -u "$L/rows" >"$L/now" &&
    comm -13 "$L/before.accounts" "$L/now" >>"$L/accounts" &&
    synced "$L/packages" "$L/configs" "$L/gave-way" "$L/accounts" && rm -f "$L/before.accounts"
}
note_brought() {
  for name in $(comm -13 "$L/before.packages" "$L/now"); do
    if grep -qsxF "package $name" "$L"/*/id; then continue; fi
    # The configuration of what somebody removed without purging it is theirs.
    if grep -qsxF -e "$name" "$L/before.configs" && ! grep -qsxF -e "$name" "$L/packages"; then
      printf '%s\n' "$name" >>"$L/configs" || return 1
    fi
    printf '%s\n' "$name" >>"$L/packages" || return 1
  done
}
note_gave_way() { # like one keeper of the time to another
  for name in $(comm -23 "$L/before.packages" "$L/now"); do
    mark=manual
    if sed -n "/^Package: $name\$/,/^\$/p" "$L/before.marks" | grep -qx 'Auto-Installed: 1'; then mark=auto; fi
    printf '%s %s\n' "$name" $mark >>"$L/gave-way" || return 1
  done
}
was_brought() { # NAME: did it come along with what we installed, without anybody asking for it
  [ -f "$L/packages" ] || return 1
  case $nl$(cat -- "$L/packages")$nl in *"$nl$1$nl"*) return 0 ;; esac
  ! by_apt && grep -qxF -e "$(own_name "$1")" "$L/packages"
}
prior_package() { # NAME: its state before us
  if was_brought "$1"; then kv installed no; else look_package "$1"; fi
}
own_name() { # NAME: that of the package which is there for it
  name=
  if ! by_apt && ! rpm -q -- "$1" >/dev/null 2>&1; then name=$(provided_package "$1" '%{NAME}'); fi
  printf '%s\n' "${name:-$1}"
}
undo_package() { # NAME [pinned]: it goes at the end of the run, together with the others
  # Of an install that was cut off, nobody noted yet what came along.
  if [ -f "$L/before.accounts" ]; then package_turn && note_new || return 1; fi
  there=0
  package_is_there "$1" '' || there=$?
  [ $there -le 1 ] || return 1
  if [ "$(was installed)" = no ]; then
    if [ $there = 0 ]; then hold_package "$1" no || return 1; fi
    if [ "$(was configuration)" = yes ]; then printf '%s\n' "$1" >>"$L/configs" || return 1; fi
    own_name "$1" >"$entry/due"
    return
  fi
  [ $there = 0 ] || return 0
  ours=$(sed -n 's/^version=//p' made 2>/dev/null) || :
  # Somebody else's upgrade stays.
  if [ "${2:-}" = pinned ] && [ "$ours" != "$(was version)" ] && package_is_there "$1" "$ours"; then
    install_packages "$1=$(was version)" || note "package $1 stays at $ours: $(was version), which was there before, cannot be had"
  fi
  hold_package "$1" "$(was hold)"
}
package_stays() { # NAME: the record of it goes
  # So do the accounts it brought.
  rm -f "$L/accounts"
  cross_out "$L/packages" "$(own_name "$1")"
}
