# Openings in the firewall that rules: a port (6443/tcp, 30000-32767/udp), or a network whose packets may come in and pass
# through (10.244.0.0/16). For each firewall X: read_X learns what is there, places_X prints where an opening belongs,
# has_X tells whether it is there, open_X makes those that are missing, shut_X takes one away. Where none rules, all is open.

which_firewall() { # → $fw, with what it lets through already
  [ -z "${fw:-}" ] || return 0
  if unit_is_active firewalld; then fw=firewalld
  elif unit_is_active nftables; then fw=nftables
  else fw=none; fi
  if [ $fw != firewalld ] && ufw_is_on; then fw=ufw; fi
  if ! read_$fw; then fw= && return 1; fi
}
ufw_is_on() { [ -f /etc/ufw/ufw.conf ] && grep -qs '^ENABLED=yes' /etc/ufw/ufw.conf && command -v ufw >/dev/null 2>&1; }
is_port() { case $1 in */tcp | */udp) ;; *) return 1 ;; esac }
within() { # PORT[-PORT]/PROTOCOL LIST…: does one of the list hold it all
  low=${1%%[-/]*} high=${1%/*} protocol=${1#*/}
  high=${high#*-}
  shift
  for range; do
    from=${range%%[-/]*} to=${range%/*}
    [ "${range#*/}" = "$protocol" ] && [ "$from" -le "$low" ] && [ "${to#*-}" -ge "$high" ] && return 0
  done
  return 1
}
closed_places() { # OPENING
  places_$fw "$1" | while read -r place; do has_$fw "$1" "$place" || printf '%s\n' "$place" || exit 1; done
}

look_opening() { # OPENING
  which_firewall || return 1
  kv by $fw
  if [ $fw = none ] || [ -z "$(closed_places "$1")" ]; then kv open yes; else kv open no; fi
}
save_opening() { # OPENING: where it was closed before us, among the places that there were
  fw= && which_firewall && places_$fw "$1" >places && closed_places "$1" | sed "s/^/$fw /" >closed
}
make_openings() { # OPENING…: the ones that are missing, all of them recorded by now
  which_firewall
  for opening; do
    at=$L/$(entry_of "$opening")
    [ -d "$at" ] || continue
    closed_places "$opening" >shut || return 1
    # A place that came up since, like a new zone, has to be closed again too.
    grep -vxF -f "$at/places" shut | sed "s/^/$fw /" >since || return 1
    if [ -s since ]; then cat since >>"$at/closed" && sync -- "$at/closed" || return 1; fi
    sed "s#^#$opening #" shut || return 1
  done >missing
  open_$fw <missing
}
entry_of() { # OPENING: its folder in the ledger
  sum=$(printf 'opening %s' "$1" | sha256sum) && printf %.16s "$sum"
}
undo_opening() { # OPENING
  sort -u closed | while read -r by place; do shut_"$by" "$1" "$place" || note "$by: $1 could not be closed again ($place)"; done
}

read_none() { :; }
places_none() { :; }
open_none() { :; }

# firewalld: a place is a layer (what holds now, what holds after a restart) of a zone.
read_firewalld() {
  fw_default=$(firewall-cmd --get-default-zone) || return 1
  fw_now=$(firewall-cmd --list-all-zones) && fw_later=$(firewall-cmd --permanent --list-all-zones) || return 1
  fw_now=$(printf '%s\n' "$fw_now" | zone_rows) fw_later=$(printf '%s\n' "$fw_later" | zone_rows)
  fw_zones=$({ echo "$fw_default" && printf '%s\n' "$fw_now" | zones_in_use; } | sort -u)
}
zones_in_use() { # of rows: those with an interface, and those of sources, but for where sources are let in or kept out as a whole
  sed -n -e 's/^\([^ ]*\) interfaces  *[^ ].*/\1/p' -e '/^\(trusted\|drop\|block\) /!s/^\([^ ]*\) sources  *[^ ].*/\1/p'
}
zone_rows() { # of a listing: ZONE KEY VALUES
  while IFS= read -r row; do
    case $row in
      ' '*:*) row=${row#"${row%%[! ]*}"} && printf '%s %s%s\n' "$zone" "${row%%:*}" "${row#*:}" ;;
      [A-Za-z0-9_]*) zone=${row%% *} ;;
    esac
  done
}
zone_has() { # ROWS ZONE KEY → its values
  printf '%s\n' "$1" | sed -n "s/^$2 $3 //p"
}
places_firewalld() { # OPENING
  for zone in $(if is_port "$1"; then echo "$fw_zones"; else echo trusted; fi); do printf '%s\n' "now $zone" "later $zone"; done
}
has_firewalld() { # OPENING PLACE
  rows=$fw_now zone=${2#* }
  case $2 in later*) rows=$fw_later ;; esac
  # shellcheck disable=SC2046
  if is_port "$1"; then within "$1" $(zone_has "$rows" "$zone" ports)
  else case " $(zone_has "$rows" "$zone" sources) " in *" $1 "*) ;; *) return 1 ;; esac; fi
}
zone_change() { # add|remove OPENING
  if is_port "$2"; then echo "--$1-port=$2"; else echo "--$1-source=$2"; fi
}
open_firewalld() { # one call for all openings of a place, as each takes its time
  sort -k 2 missing >by-place
  sed 's/^[^ ]* //' by-place | sort -u | while read -r layer zone; do
    set -- --zone="$zone"
    [ "$layer" = now ] || set -- "$@" --permanent
    for opening in $(sed -n "s/ $layer $zone\$//p" by-place); do set -- "$@" "$(zone_change add "$opening")"; done
    firewall-cmd -q "$@" || exit 1
  done
}
shut_firewalld() { # OPENING PLACE
  zone=${2#* }
  if ! systemctl is-active -q firewalld; then
    [ "${2%% *}" = now ] || firewall-offline-cmd -q --zone="$zone" "$(zone_change remove "$1")"
  elif [ "${2%% *}" = now ]; then firewall-cmd -q --zone="$zone" "$(zone_change remove "$1")"
  else firewall-cmd -q --permanent --zone="$zone" "$(zone_change remove "$1")"; fi
}

# ufw: a place is a rule, as ufw itself would write it.
read_ufw() { fw_rules=$(ufw show added) && fw_rules=$nl$fw_rules$nl; }
places_ufw() { # OPENING
  case $1 in
    *-*/tcp | *-*/udp) printf 'allow %s\n' "$(printf %s "$1" | sed 's/-/:/')" ;;
    */tcp | */udp) printf 'allow %s\n' "$1" ;;
    *) printf '%s\n' "allow from $1" "route allow from $1" "route allow to $1" ;;
  esac
}
has_ufw() { # OPENING RULE
  limit=$(printf %s "$2" | sed 's/^allow/limit/')
  case $fw_rules in
    *"${nl}ufw $2$nl"* | *"${nl}ufw $2 comment "* | *"${nl}ufw $limit$nl"* | *"${nl}ufw $limit comment "*) ;;
    *) return 1 ;;
  esac
}
open_ufw() {
  while read -r _ rule; do
    # shellcheck disable=SC2086
    ufw $rule comment kubexm >/dev/null || return 1
  done
}
shut_ufw() { # OPENING RULE
  # shellcheck disable=SC2086
  case $2 in
    route*) ufw route delete ${2#route } ;;
    *) ufw delete $2 ;;
  esac >/dev/null
}
set_ufw_off() { ufw disable >/dev/null; }
undo_ufw_off() { [ "$(was ufw)" = off ] || ufw --force enable >/dev/null; }

# nftables: a place is a chain of the rules in force, or the file they come from at boot.
nft_conf() { if [ -e /etc/sysconfig/nftables.conf ]; then echo /etc/sysconfig/nftables.conf; else echo /etc/nftables.conf; fi; }
read_nftables() {
  listing=$(nft list ruleset) && fw_chains= || return 1
  while IFS= read -r row; do
    # shellcheck disable=SC2086
    case $row in
      'table '*) set -- $row && table="$2 $3" ;;
      *'chain '*' {') set -- $row && chain=$2 ;;
      # Upper-case chains of these families belong to iptables, and to what uses it.
      *'type filter hook input '* | *'type filter hook forward '*)
        hook=${row#*hook } hook=${hook%% *}
        case $table-$chain in ip\ *-[a-z]* | ip6\ *-[a-z]* | inet\ *-[a-z]*) fw_chains="$fw_chains$hook $table $chain$nl" ;; esac
        ;;
    esac
  done <<X
$listing
X
  fw_chains=$(printf %s "$fw_chains" | sort -u)
}
nft_rules() { # OPENING HOOK FAMILY: what to insert into such a chain
  case $1 in *:*/*) address=ip6 ;; *) address=ip ;; esac
  if is_port "$1"; then
    [ "$2" != input ] || echo "${1#*/} dport ${1%/*}"
  elif [ "$3" = inet ] || [ "$3" = $address ]; then
    echo "$address saddr $1"
    [ "$2" != forward ] || echo "$address daddr $1"
  fi
}
places_nftables() { # OPENING
  printf '%s\n' "$fw_chains" | while read -r hook family table chain; do
    [ -n "$chain" ] && [ -n "$(nft_rules "$1" "$hook" "$family")" ] || continue
    printf '%s\n' "chain $hook $family $table $chain" "file $hook $family $table $chain"
  done
}
has_nftables() { # OPENING PLACE
  opening=$1
  # shellcheck disable=SC2086
  set -- $2
  if [ "$1" = chain ]; then nft list chain "$3" "$4" "$5"
  else grep -sF "insert rule $3 $4 $5 " "$(nft_conf)"; fi | grep -qF "comment \"kubexm $opening\""
}
open_nftables() {
  : >texts
  while read -r opening kind hook family table chain; do
    nft_rules "$opening" "$hook" "$family" | while read -r rule; do
      text="insert rule $family $table $chain $rule accept comment \"kubexm $opening\""
      if [ "$kind" = chain ]; then nft "$text" || exit 1; else printf '%s\n' "$text" >>texts || exit 1; fi
    done || return 1
  done
  [ -s texts ] || return 0
  conf=$(nft_conf)
  [ -e "$conf" ] || : >"$conf"
  draft "$conf" with_texts && move "$tmp" "$file"
}
with_texts() { # a last line without its end would swallow ours
  cat && if [ -n "$(tail -c 1 "$conf")" ]; then echo; fi && cat texts
}
without_lines() { grep -vF -- "$1" || [ $? = 1 ]; } # TEXT
shut_nftables() { # OPENING PLACE
  mark="comment \"kubexm $1\""
  # shellcheck disable=SC2086
  set -- "$1" $2
  case $2 in
    chain)
      for handle in $(nft -a list chain "$4" "$5" "$6" 2>/dev/null | grep -F -- "$mark" | sed 's/.*# handle //'); do
        nft delete rule "$4" "$5" "$6" handle "$handle" || return 1
      done
      ;;
    file)
      conf=$(nft_conf)
      [ -e "$conf" ] || return 0
      draft "$conf" without_lines "$mark" && move "$tmp" "$file"
      ;;
  esac
}
