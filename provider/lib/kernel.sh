# Kernel parameters, modules, swap and mounts.
sysctl_path() { # NAME → $path
  path=/proc/sys rest=$1
  while case $rest in *.*) : ;; *) false ;; esac do
    path=$path/${rest%%.*} rest=${rest#*.}
  done
  path=$path/$rest
}
look_sysctl() { # NAME
  sysctl_path "$1"
  if [ ! -e "$path" ]; then kv value absent; return; fi
  value=$(cat "$path") || return 1 # not by read: the kernel answers byte-wise reads with the first number only
  set -f
  # shellcheck disable=SC2086
  set -- $value # tabs become spaces
  set +f
  kv value "$*"
}
set_sysctl() { # NAME VALUE
  sysctl_path "$1"
  if [ ! -e "$path" ]; then
    say "the kernel has no parameter $1 (is its module loaded?)"
    return 1
  fi
  printf '%s\n' "$2" >"$path"
}
undo_sysctl() { # NAME
  sysctl_path "$1"
  if [ -e "$path" ] && [ "$(was value)" != absent ]; then was value >"$path"; fi
}
look_module() { # NAME: a built-in one, or one that a container cannot load, is not missing
  name=$1
  case $name in *-*) name=$(printf %s "$1" | tr - _) ;; esac
  read -r release </proc/sys/kernel/osrelease
  if [ -d "/sys/module/$name" ]; then kv loaded yes && kv how module
  elif [ -d "/lib/modules/$release" ] && grep -qs "/$1\.ko\|/$name\.ko" "/lib/modules/$release/modules.builtin"; then kv loaded yes && kv how built-in
  elif [ ! -d "/lib/modules/$release" ] || systemd-detect-virt -cq; then kv loaded yes && kv how kernel-of-the-machine
  else kv loaded no; fi
}
undo_module() { # NAME
  [ "$(was loaded)" = yes ] || modprobe -r -- "$1" 2>/dev/null || note "module $1 is in use and stays loaded until the next boot"
}
