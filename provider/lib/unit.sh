# systemd units.
look_unit() { # NAME: states of the unit, and for which configuration it was last started by us
  shown=$nl$(systemctl show -p LoadState,UnitFileState,ActiveState -- "$1")$nl || return 1
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
set_unit() { # NAME ENABLED RUNNING CHANGE(restart|reload) APPLIED
  systemctl daemon-reload
  case $2 in
    yes) systemctl unmask -q -- "$1" && systemctl enable -q -- "$1" ;;
    no) systemctl disable -q -- "$1" ;;
    masked) systemctl mask -q --now -- "$1" ;;
  esac
  systemctl reset-failed -- "$1" 2>/dev/null || :
  case $3 in
    yes)
      verb=start
      if systemctl is-active -q -- "$1"; then
        verb=
        [ "$(cat applied 2>/dev/null)" = "$5" ] || verb=$4
      fi
      [ "$verb" = reload ] && { systemctl reload -- "$1" || verb=restart; }
      case $verb in start | restart) systemctl "$verb" -- "$1" || { unit_failed "$1"; return 1; } ;; esac
      # A service that dies at once is still "active" in the first moments.
      for _ in 1 2 3; do
        systemctl is-active -q -- "$1" || { unit_failed "$1"; return 1; }
        sleep 0.1
      done
      ;;
    no) systemctl stop -- "$1" ;;
  esac
  printf %s "$5" >applied
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
  [ -f "$L/start" ] || return 0
  while IFS= read -r unit; do
    systemctl cat -- "$unit" >/dev/null 2>&1 || continue
    systemctl start -- "$unit" || note "$unit, which ran before, does not start: see journalctl -u $unit"
  done <"$L/start"
  rm -f "$L/start"
}
