# Folders that fill by themselves: data of a service, pods, images.
look_data() { # PATH
  if [ -d "$1" ]; then kv type directory; else kv type absent; fi
  if [ -d "$entry" ]; then kv recorded yes; else kv recorded no; fi
}
save_data() { # PATH
  if [ -d "$1" ]; then ls -A -- "$1" >had && stat -L -c '%a %u:%g' -- "$1" >rights; else : >had; fi
}
unmount_below() { # PATH: nothing of other people's volumes may be deleted through a mount
  sed -n 's/^[^ ]* \([^ ]*\) .*/\1/p' /proc/self/mounts | LC_ALL=C sort -r | while IFS= read -r at; do
    case $at in "$1"/*) umount -- "$at" 2>/dev/null || umount -l -- "$at" || exit 1 ;; esac
  done
}
undo_data() { # PATH: what came into it since goes
  [ -d "$1" ] || return 0
  unmount_below "$1" || { say "something below $1 is still mounted"; return 1; }
  if [ "$(was type)" = absent ] && ! mountpoint -q -- "$1"; then rm -rf --one-file-system -- "$1"; return; fi
  ls -A -- "$1" | while IFS= read -r name; do
    grep -Fxq -e "$name" had || rm -rf --one-file-system -- "$1/$name" || exit 1
  done || return 1
  [ -f rights ] || return 0
  # Services take such a folder for themselves alone.
  read -r mode owner <rights && chown -- "$owner" "$1" && chmod -- "$mode" "$1"
}
ledger_of() { # ID: the folder of its entry
  key=$(printf %s "$1" | sha256sum)
  printf '%s/%.16s' "$L" "$key"
}
is_ours() { [ -d "$(ledger_of "$1")" ]; } # ID
