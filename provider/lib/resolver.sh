# DNS servers, put where the program that writes /etc/resolv.conf on this host looks for them.
resolver_begin='# BEGIN KubeXM DNS servers' resolver_end='# END KubeXM DNS servers'

find_resolver() { # who writes resolv.conf → $ruler, and the file that it reads → $place
  real /etc/resolv.conf || file=/etc/resolv.conf
  case $file in
    /run/systemd/resolve/* | /usr/lib/systemd/resolv.conf) ruler=resolved ;;
    /run/NetworkManager/*) ruler=NetworkManager ;;
    /run/resolvconf/*) ruler=resolvconf ;;
    *) resolver_says "$file" || return 1 ;;
  esac
  case $ruler in
    resolved) place=/etc/systemd/resolved.conf.d/kubexm.conf ;;
    NetworkManager) place=/etc/NetworkManager/conf.d/kubexm-dns.conf ;;
    resolvconf) place=/etc/resolvconf/resolv.conf.d/head ;;
    openresolv) place=/etc/resolvconf.conf ;;
    *) place=$file ;;
  esac
}
resolver_says() { # FILE: who is said there to write it, or nobody → $ruler
  ruler=nobody
  [ -r "$1" ] || return 0
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in '#'*) line=${line#?} line="# ${line#"${line%%[! ]*}"}" ;; esac
    case $ruler-$line in
      *'-nameserver 127.0.0.53') ruler=resolved && return ;;
      nobody-'# '[Gg]'enerated by NetworkManager'*) ruler=NetworkManager ;;
      nobody-'# '[Gg]'enerated by resolvconf'*) ruler=openresolv ;;
    esac
  done <"$1"
}
nameservers() { sed -n 's/^nameserver[[:space:]][[:space:]]*\([^[:space:]]*\).*/\1/p' "$1" 2>/dev/null; }
joined() { printf %s "$1" && shift && for word; do printf ',%s' "$word"; done; }
resolver_text() { # RULER SERVER…
  ruler=$1
  shift
  case $ruler in
    resolved) printf '# Managed by kubexm\n[Resolve]\nDNS=%s\n' "$*" ;;
    # Servers that are set here replace those of the connections: the ones from before go behind ours.
    # shellcheck disable=SC2046
    NetworkManager) printf '# Managed by kubexm\n[global-dns-domain-*]\nservers=%s\n' "$(joined "$@" $(cat "$entry/servers" 2>/dev/null))" ;;
    openresolv) printf 'name_servers="%s ${name_servers:-}"\n' "$*" ;;
    *) printf 'nameserver %s\n' "$@" ;;
  esac
}
resolver_is_block() { case $1 in resolved | NetworkManager) return 1 ;; esac }
look_resolver() { # SERVER…
  find_resolver || return 1
  kv ruler "$ruler"
  # What another cluster left behind looks like ours.
  if [ -d "$entry" ]; then kv recorded yes; else kv recorded no; fi
  if resolver_is_block "$ruler"; then read_block "$place" "$resolver_begin" "$resolver_end"; else read_whole "$place"; fi || return 1
  case $inside in after) ;; before) body= ;; *) body=other ;; esac
  if [ -z "$body" ]; then kv servers none
  elif [ "$body" = "$(resolver_text "$ruler" "$@")$nl" ]; then kv servers "$*"
  else kv servers other; fi
}
resolver_tell() { # RULER: it reads its files again
  case $1 in
    resolved) systemctl try-restart systemd-resolved ;;
    NetworkManager) systemctl reload NetworkManager ;;
    resolvconf | openresolv) resolvconf -u ;;
  esac
}
save_resolver() {
  { nameservers /etc/resolv.conf >servers || [ ! -e /etc/resolv.conf ]; } && : >places
}
set_resolver() { # SERVER…
  find_resolver || return 1
  # The ruler may be another than last time.
  unset_resolver "$place"
  printf '%s %s\n' "$ruler" "$place" >>places && sync -- places || return 1
  if resolver_is_block "$ruler"; then
    at=end
    [ "$ruler" != nobody ] || at=top
    if [ ! -f block-saved ]; then save_block "$place" "$resolver_begin" "$resolver_end" && : >block-saved || return 1; fi
    put_block "$place" "$resolver_begin" "$resolver_end" "$(resolver_text "$ruler" "$@")$nl" $at
  else
    put_file "$place" 0644 root:root resolver_text "$ruler" "$@"
  fi
  resolver_tell "$ruler"
}
unset_resolver() { # EXCEPT(a place): out of every place we put it in
  sort -u places >places.once
  while read -r ruler_then place_then; do
    [ "$place_then" != "$1" ] || continue
    if resolver_is_block "$ruler_then"; then undo_block "$place_then" "$resolver_begin" "$resolver_end"
    else rm -f -- "$place_then"; fi
    resolver_tell "$ruler_then"
  done <places.once
}
