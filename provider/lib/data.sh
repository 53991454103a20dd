# Folders that fill by themselves: data of a service, pods, images.
look_data() { # PATH
  if [ -d "$1" ]; then kv type directory; else kv type absent; fi
  if [ -d "$entry" ]; then kv recorded yes; else kv recorded no; fi
}
save_data() { # PATH
  if [ -d "$1" ]; then ls -A -- "$1" >had && stat -L -c '%a %u:%g' -- "$1" >rights && own_mounts "$1" >mounts; else : >had; fi
}
mounts_below() { # PATH: as /proc/self/mounts writes them
  under=$(readlink -f -- "$1") || under=$1
  sed -n 's/^[^ ]* \([^ ]*\) .*/\1/p' /proc/self/mounts | while IFS= read -r at; do
    case $at in "$under"/*) printf '%s\n' "$at" || exit 1 ;; esac
  done
}
own_mounts() { # PATH: without those of pods, and of images that are looked into, which an earlier installation may have left
  mounts_below "$1" | while IFS= read -r at; do
    case $at in */pods/*/volume*/* | */plugins/*/* | */tmpmounts/*) ;; *) printf '%s\n' "$at" || exit 1 ;; esac
  done
}
from_before() { cat "$L"/*/mounts 2>/dev/null | grep -Fxq -e "$1"; } # MOUNT: was it there before its folder was ours
unmount_below() { # PATH: nothing of other people's volumes may be deleted through a mount; those from before stay
  mounts_below "$1" | sort -r | while IFS= read -r at; do
    from_before "$at" || umount -- "$at" 2>/dev/null || umount -l -- "$at" || exit 1
  done
}
held_mounts=/run/kubexm-mounts
hold_mounts() { # PATH: those from before are elsewhere, while somebody unmounts and removes all below the path
  mounts_below "$1" | sort | while IFS= read -r at; do
    from_before "$at" || continue
    held=$(held_at "$at")
    mkdir -p -- "$held" && printf '%s\n' "$at" >>$held_mounts/list || exit 1
    mountpoint -q -- "$held" || mount --bind -- "$at" "$held" || exit 1
    umount -- "$at" 2>/dev/null || umount -l -- "$at" || exit 1
  done
}
held_at() { printf '%s/%.16s' $held_mounts "$(printf %s "$1" | sha256sum)"; } # MOUNT
bring_mounts() { # back from there
  [ -f $held_mounts/list ] || return 0
  while IFS= read -r at; do
    held=$(held_at "$at")
    mountpoint -q -- "$held" || continue
    mountpoint -q -- "$at" || { mkdir -p -- "$at" && mount --bind -- "$held" "$at"; } || return 1
    umount -- "$held" && rmdir -- "$held" || return 1
  done <$held_mounts/list
  # What is still mounted there is nothing to be removed.
  rm -f $held_mounts/list && rmdir $held_mounts/* $held_mounts 2>/dev/null || :
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
