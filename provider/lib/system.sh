# The system as a whole: what it is, SELinux, and how many files a service may open.
tell_release() { # which distribution runs here, without a program, as every look tells it
  file=/etc/os-release text=
  [ -r $file ] || file=/usr/lib/os-release
  while IFS= read -r line || [ -n "$line" ]; do text=$text$line$nl; done <$file
  printf %s "$text"
}
in_container() { [ -e /run/systemd/container ]; }

look_parameter() { # NAME WANTED: in a container, where what is missing or read-only is the machine's to set
  sysctl_path "$1"
  if [ -w "$path" ]; then look_sysctl "$1"; else kv value "$2" && kv how kernel-of-the-machine; fi
}

look_selinux() { # WANTED: what comes to the same counts as it
  config=/etc/selinux/config
  if [ ! -e "$config" ] || ! command -v getenforce >/dev/null 2>&1; then
    kv mode "$1" && kv boot "$1" && kv how no-selinux
    return
  fi
  mode=$(getenforce) || return 1
  mode=$(printf %s "$mode" | tr 'A-Z' 'a-z')
  boot=$(selinux_line | sed 's/^SELINUX=\([a-z]*\).*/\1/')
  kv mode_found "$mode" && kv boot_found "$boot"
  # Switched off at boot, it can neither be in the way nor be switched on without another boot.
  case $1-$mode in *-disabled | disabled-permissive) mode=$1 ;; esac
  case $1-$boot in permissive-disabled) boot=$1 ;; esac
  kv mode "$mode" && kv boot "$boot"
}
selinux_line() { sed -n '/^SELINUX=/p' /etc/selinux/config | tail -n 1; }
with_line() { cat && printf '%s\n' "$1"; } # LINE
put_selinux_line() { # LINE(empty: none)
  config=/etc/selinux/config
  if [ -z "$1" ]; then draft $config sed '/^SELINUX=/d'
  elif [ -z "$(selinux_line)" ]; then draft $config with_line "$1"
  else draft $config sed "s/^SELINUX=.*/$1/"; fi || return 1
  move "$tmp" "$file"
}
set_selinux() { # WANTED
  found=$(look_selinux "$1")
  case $nl$found$nl in *"${nl}boot=$1$nl"*) ;; *) put_selinux_line "SELINUX=$1" ;; esac
  case $nl$found$nl in
    *"${nl}mode_found=disabled$nl"*) [ "$1" != enforcing ] || note "SELinux is switched off until the next boot, which then labels all files anew" ;;
    *"${nl}mode=$1$nl"*) ;;
    *) if [ "$1" = enforcing ]; then setenforce 1; else setenforce 0; fi ;;
  esac
}
undo_selinux() {
  if [ -e /etc/selinux/config ] && [ "$(selinux_line)" != "$(cat line)" ]; then put_selinux_line "$(cat line)"; fi
  case $(was mode_found)-$(getenforce) in
    enforcing-Permissive) setenforce 1 ;;
    permissive-Enforcing) setenforce 0 ;;
  esac
}

nofile_conf=/etc/systemd/system.conf.d/50-kubexm.conf
look_nofile() { # LEAST: the most files a service may open
  if [ -d "$entry" ] && [ ! -e "$nofile_conf" ]; then kv nofile "until the next boot"; return; fi
  # A service that sets none for itself has what systemd lets one have.
  if learned_unit rescue.service; then
    most=${shown#*"${nl}LimitNOFILE="}
    case $shown in *"${nl}LoadState=loaded$nl"*) if is_enough "${most%%"$nl"*}" "$1"; then kv nofile enough; return; fi ;; esac
  fi
  most=$(systemctl show -p DefaultLimitNOFILE) && most=${most#*=} || return 1
  if is_enough "$most" "$1"; then kv nofile enough; else kv nofile "$most"; fi
}
is_enough() { # FOUND LEAST
  case $1 in
    infinity | ??????????*) ;;
    *) [ "$1" -ge "$2" ] ;;
  esac
}
set_nofile() { # LEAST
  put_file "$nofile_conf" 0644 root:root printf '# Managed by kubexm\n[Manager]\nDefaultLimitNOFILE=1024:%s\n' "$1"
  systemctl daemon-reexec
}
undo_nofile() {
  rm -f -- "$nofile_conf"
  systemctl daemon-reexec
}
