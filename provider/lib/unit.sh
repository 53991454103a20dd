# systemd units.
unit_is_known() { # SERVICE: to see whether it has a file costs nothing, to ask systemd does
  for place in /etc/systemd /run/systemd /usr/local/lib/systemd /usr/lib/systemd /lib/systemd; do
    if [ -e "$place/system/$1.service" ]; then return 0; fi
  done
  return 1
}
unit_may_be_active() { # SERVICE: systemd keeps a link for each that is; before version 236 it did not, and has to be asked
  unit_is_known "$1" && { [ ! -d /run/systemd/units ] || [ -L "/run/systemd/units/invocation:$1.service" ]; }
}
unit_is_active() { # SERVICE: as systemd said before, or says now
  if learned_unit "$1.service"; then case $shown in *"${nl}ActiveState=active$nl"*) ;; *) return 1 ;; esac
  else unit_may_be_active "$1" && systemctl is-active -q "$1"; fi
}
show_units() { # NAME…: a block for each, with all that anybody here goes by
  systemctl show -p Id,LoadState,UnitFileState,ActiveState,NeedDaemonReload,ExecMainStartTimestampMonotonic,LimitNOFILE -- "$@"
}
learn_units() { # NAME…: for those who are about to ask
  learned_units=
  [ $# -eq 0 ] || learned_units=$(show_units "$@")
}
learned_unit() { # NAME → $shown: its block of what systemd said before, if it did; not where the name is another's alias
  shown=$nl$learned_units$nl
  case $shown in *"${nl}Id=$1$nl"*) ;; *) return 1 ;; esac
  # What stands before the name in it, older systemd says first, newer last.
  head=${shown%%"${nl}Id=$1$nl"*}$nl shown=${shown#*"${nl}Id=$1$nl"}
  shown=$nl${head##*"$nl$nl"}${shown%%"$nl$nl"*}$nl
}
shown_unit() { # NAME → $shown: as said before, or now
  learned_unit "$1" || shown=$nl$(show_units "$1")$nl
}
look_unit() { # NAME: states of the unit, and for which configuration it was last started by us
  shown_unit "$1" || return 1
  case $shown in
    *"${nl}LoadState=not-found$nl"*) kv enabled absent && kv running no ;;
    *"${nl}LoadState=masked$nl"*) kv enabled masked && kv running no ;;
    *)
      case $shown in
        *"${nl}UnitFileState=disabled$nl"* | *"${nl}UnitFileState=$nl"*) kv enabled no ;;
        *) kv enabled yes ;;
      esac
      case $shown in *"${nl}ActiveState=active$nl"*) kv running yes ;; *) kv running no ;; esac
      ;;
  esac
  applied_for
}
unit_failed() { # NAME: its last words
  say "$1 does not run: $(systemctl is-active "$1" 2>&1)"
  journalctl -u "$1" -n 20 --no-pager -o cat 2>/dev/null
  return 1
}
reload_units() { if [ -e "$L/reload" ]; then systemctl daemon-reload && rm -f "$L/reload"; fi; }
change_unit_file() { # VERB NAME: systemctl reads all unit files anew after it by itself
  systemctl "$1" -q -- "$2" && gone "$L/reload"
}
started_since() { # SHOWN KEY…: others started it with what we made; both times are hundredths of a second since the boot
  # lxcfs has another time there.
  while read -r _ at _; do [ "$at" != /proc/uptime ] || return 1; done </proc/self/mounts
  began=${1#*"${nl}ExecMainStartTimestampMonotonic="} && began=${began%%"$nl"*} && began=${began%????}
  shift
  for key in "$@"; do
    when=
    while IFS= read -r row; do case $row in when=*) when=${row#when=} ;; esac done 2>/dev/null <"$L/$key/made"
    [ -n "$when" ] && [ "${began:-0}" -gt "$when" ] || return 1
  done
}
stays_up() { # NAME SECONDS
  [ "$2" -gt 0 ] || return 0
  main=$(systemctl show -p MainPID -- "$1")
  for _ in $(seq "$2"); do
    sleep 1
    systemctl is-active -q -- "$1" && [ "$main" = "$(systemctl show -p MainPID -- "$1")" ] || return 1
  done
}
set_unit() { # NAME ENABLED RUNNING CHANGE(restart|reload) STEADY APPLIED KEYS(of what it is started with)…
  shown_unit "$1"
  case $shown in *"${nl}NeedDaemonReload=yes$nl"* | *"${nl}LoadState=not-found$nl"*) : >"$L/reload" ;; esac
  # What systemd says of a unit file is what it last read.
  if [ -e "$L/reload" ]; then state=unknown; else state=${shown#*"${nl}UnitFileState="} && state=${state%%"$nl"*}; fi
  case $2-$state in
    yes-enabled | no-disabled) ;;
    yes-*)
      case $shown in *"${nl}LoadState=masked$nl"*) change_unit_file unmask "$1" ;; esac
      change_unit_file enable "$1"
      ;;
    no-*) change_unit_file disable "$1" ;;
    masked-*) systemctl mask -q --now -- "$1" ;;
  esac
  reload_units
  case $shown in *"${nl}ActiveState=failed$nl"*) systemctl reset-failed -- "$1" 2>/dev/null || : ;; esac
  case $3 in
    yes)
      verb=start
      case $shown in
        *"${nl}ActiveState=active$nl"*)
          verb=
          if [ -f applied ]; then [ "$(cat applied)" = "$6" ] || verb=$4
          elif [ $# -lt 7 ] || ! (shift 6 && started_since "$shown" "$@"); then verb=$4; fi
          ;;
      esac
      [ "$verb" = reload ] && { systemctl reload -- "$1" || verb=restart; }
      case $verb in start | restart) systemctl "$verb" -- "$1" || { unit_failed "$1"; return 1; } ;; esac
      # A service that dies at once is still "active" in the first moments.
      sleep 0.3
      systemctl is-active -q -- "$1" || { unit_failed "$1"; return 1; }
      [ -z "$verb" ] || stays_up "$1" "$5" || { unit_failed "$1"; return 1; }
      ;;
    no) systemctl stop -- "$1" ;;
  esac
  printf %s "$6" >applied
}
undo_unit() { # NAME
  case $(was enabled) in
    absent) systemctl disable -q --now -- "$1" 2>/dev/null || : ;;
    masked) systemctl mask -q --now -- "$1" ;;
    yes) systemctl unmask -q -- "$1" && systemctl enable -q -- "$1" 2>/dev/null || : ;;
    no) systemctl unmask -q -- "$1" && systemctl disable -q -- "$1" 2>/dev/null || : ;;
  esac
  systemctl cat -- "$1" >/dev/null 2>&1 || return 0
  case $(was running) in
    # It starts again at the end, when its configuration is the old one too.
    yes) systemctl stop -- "$1" && printf '%s\n' "$1" >>"$L/start" ;;
    *) systemctl stop -- "$1" ;;
  esac
  systemctl reset-failed -- "$1" 2>/dev/null || :
}
start_again() { # units that ran before we came
  reload_units || return 1
  [ -f "$L/start" ] || return 0
  while IFS= read -r unit; do
    systemctl cat -- "$unit" >/dev/null 2>&1 || continue
    systemctl start -- "$unit" || note "$unit, which ran before, does not start: see journalctl -u $unit"
  done <"$L/start"
  rm -f "$L/start"
}
