# Users, groups, mounts and swap.
look_group() { # NAME
  line=$(getent group "$1") || { kv group absent; return 0; }
  kv group present
  line=${line#*:*:}
  kv gid "${line%%:*}"
}
look_user() { # NAME
  line=$(getent passwd "$1") || { kv user absent; return 0; }
  kv user present
  IFS=: read -r _ _ uid gid _ home shell <<X
$line
X
  kv uid "$uid" && kv home "$home" && kv shell "$shell" && kv group "$(getent group "$gid" | sed 's/:.*//')"
}
undo_user() { # NAME
  if [ "$(was user)" = absent ]; then
    if getent passwd "$1" >/dev/null; then userdel "$1" || return 1; fi
  else usermod -g "$(was group)" -s "$(was shell)" -d "$(was home)" "$1"; fi
}
undo_group() { # NAME
  if [ "$(was group)" = absent ] && getent group "$1" >/dev/null; then groupdel "$1"; fi
}
sweep_account_locks() { # what a program that was killed, or a power cut, left of its lock on a list of accounts
  for file in /etc/passwd.[0-9]* /etc/shadow.[0-9]* /etc/group.[0-9]* /etc/gshadow.[0-9]*; do
    case ${file##*.} in *[!0-9]*) continue ;; esac
    # It holds the number by which it is called, or nothing yet: a list that somebody keeps under a date is none.
    if [ -s "$file" ] && ! says "$file" "${file##*.}"; then continue; fi
    # Since the boot the number may be another program's.
    if [ -f "$file" ] && { [ ! -d "/proc/${file##*.}" ] || [ "$file" -ot /run/systemd/system ]; }; then rm -f -- "$file"; fi
  done
}
look_mount() { # PATH SOURCE HOW: mounted by others from the same source is as good as by us
  line=$(findmnt -rn -o SOURCE,FSTYPE --mountpoint "$1") || { kv mounted no; return 0; }
  how=other
  if [ -f "$entry/how" ]; then how=$(cat "$entry/how"); elif [ "${line% *}" = "$(readlink -f -- "$2" 2>/dev/null)" ] || [ "${line% *}" = "$2" ]; then how=$3; fi
  kv mounted yes && kv source "${line% *}" && kv fstype "${line##* }" && kv how "$how"
}
look_swap() {
  # The swap that a container sees is the machine's.
  if ! in_container && { read -r _ && read -r _; } </proc/swaps; then kv swap on; else kv swap off; fi
  if fstab_swaps; then kv fstab on; else kv fstab off; fi
  if [ -n "$(swap_units)" ]; then kv units on; else kv units off; fi
}
fstab_swaps() { # is one of its lines about swap; as set_swap_off finds them, at the price of no program
  [ -e /etc/fstab ] || return 1
  while read -r device _ type rest || [ -n "$device" ]; do
    if [ "$type" = swap ] && [ -n "$rest" ]; then case $device in '#'*) ;; *) return 0 ;; esac; fi
  done </etc/fstab
  return 1
}
swap_units() { # units that would turn swap on at boot, not counting those made from fstab
  listed=$nl
  for file in /etc/systemd/system/*.swap /usr/lib/systemd/system/*.swap; do
    name=${file##*/}
    case $listed in *"$nl$name$nl"*) continue ;; esac
    [ -e "$file" ] || continue
    listed=$listed$name$nl
    [ "$(readlink -f "/etc/systemd/system/$name")" = /dev/null ] || printf '%s\n' "$name"
  done
  for conf in /etc/systemd/zram-generator.conf /usr/lib/systemd/zram-generator.conf; do
    [ -s "$conf" ] && [ ! -e /run/systemd/zram-generator.conf ] && [ ! -L /etc/systemd/zram-generator.conf ] && echo zram-generator && return
  done
  return 0
}
save_swap() {
  : >active
  in_container || sed 1d /proc/swaps | while read -r device _ _ _ priority; do printf '%s %s\n' "$device" "$priority" || exit 1; done >active || return 1
  if [ -e /etc/fstab ]; then cp -aL /etc/fstab fstab || return 1; fi
  units=$(swap_units) && : >units || return 1
  if [ -n "$units" ]; then printf '%s\n' "$units" >units; fi
}
set_swap_off() {
  if fstab_swaps; then
    draft /etc/fstab sed 's/^\([[:space:]]*[^#[:space:]][^[:space:]]*[[:space:]][[:space:]]*[^[:space:]]*[[:space:]][[:space:]]*swap[[:space:]]\)/#kubexm# \1/' &&
      move "$tmp" "$file" || return 1
  fi
  for unit in $(swap_units); do
    case $unit in
      zram-generator)
        # The administrator's own comes back with the undo; of the distribution's only this link is in the way.
        if [ -e /etc/systemd/zram-generator.conf ]; then mkdir -p own && put_back /etc/systemd/zram-generator.conf own/zram-generator.conf || return 1; fi
        ln -sfn /dev/null /etc/systemd/zram-generator.conf.kubexm && mv -T /etc/systemd/zram-generator.conf.kubexm /etc/systemd/zram-generator.conf || return 1
        ;;
      *)
        # A unit of the administrator's own cannot be masked where it stands.
        if [ -e "/etc/systemd/system/$unit" ]; then
          systemctl stop "$unit" 2>/dev/null || :
          set_aside "/etc/systemd/system/$unit" own || return 1
        fi
        printf '%s\n' "$unit" >>units
        systemctl mask -q --now "$unit"
        ;;
    esac
  done
  systemctl daemon-reload
  in_container || swapoff -a
}
undo_swap() {
  if [ -e /etc/fstab ] && grep -q '^#kubexm# ' /etc/fstab; then
    draft /etc/fstab sed 's/^#kubexm# //' && touch -r fstab "$tmp" && move "$tmp" "$file" || return 1
  fi
  sort -u units >units.once
  while IFS= read -r unit; do
    case $unit in
      zram-generator)
        if [ -L /etc/systemd/zram-generator.conf ]; then rm -f /etc/systemd/zram-generator.conf; fi
        if [ -e own/zram-generator.conf ] && [ ! -e /etc/systemd/zram-generator.conf ]; then put_back own/zram-generator.conf /etc/systemd/zram-generator.conf; fi
        ;;
      *)
        systemctl unmask -q "$unit"
        if [ -e "own/$unit" ]; then put_back "own/$unit" "/etc/systemd/system/$unit"; fi
        ;;
    esac
  done <units.once
  systemctl daemon-reload
  while read -r device priority; do
    if ! grep -qs "^$device " /proc/swaps; then
      case $priority in
        -*) swapon -- "$device" ;;
        *) swapon -p "$priority" -- "$device" ;;
      esac || note "swap on $device could not be turned on again"
    fi
  done <active
}
