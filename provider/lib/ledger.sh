# The ledger: one folder per changed thing, named by the hash of its id. In it: id, n (order), prior (state before the
# first change), body (copy of what stood there), made (state we left), undo (script), owners/ (components that want it).

begin_entries() { # KEY…: empty folders for those that are new, at once
  if [ -z "${top:-}" ]; then
    gone "$L"/.new/*
    top=0
    for file in "$L"/*/n; do
      if [ -f "$file" ] && read -r n <"$file" && [ "$n" -gt "$top" ]; then top=$n; fi
    done
  fi
  for key; do
    shift
    if [ ! -d "$L/$key" ]; then set -- "$@" "$L/.new/$key" "$L/.new/$key/owners"; fi
  done
  [ $# -gt 0 ] || return 0
  if [ ! -d "$L/.new" ]; then set -- "$L/.new" "$@"; fi
  mkdir -- "$@"
}
prepare_entry() { # KEY ID OWNER LOOK SAVE UNDO (three function names): before the first change, once
  if [ -d "$L/$1" ]; then
    : >"$L/$1/owners/$3"
    return
  fi
  top=$((top + 1)) new=$L/.new/$1
  # Nothing may be changed that was not saved: `set -e` says nothing inside `||`, hence the chain. A look may end well on a full
  # disk, the empty line after it does not.
  (
    entry=$new
    cd "$new" && "$4" >prior && echo >>prior && "$5" && "$6" >undo && printf '%s' "$2" >id && printf '%s\n' "$top" >n && : >"owners/$3"
  )
}
enter_prepared() { # all at once, as syncing costs more than what is synced
  set --
  for new in "$L"/.new/*; do
    [ -d "$new" ] || continue
    set -- "$@" "$new"
    # All that was saved: what comes back empty after a power cut would let undo delete what is not ours.
    for file in "$new"/*; do
      if [ -f "$file" ] && [ ! -L "$file" ]; then set -- "$@" "$file"
      elif [ -d "$file" ] && [ "$file" != "$new/owners" ]; then flush "$file" || return 1; fi
    done
  done
  [ $# -gt 0 ] || return 0
  { sync -- "$@" 2>/dev/null || sync; } && mv -- "$L"/.new/* "$L/" && { sync -- "$L" 2>/dev/null || sync; }
}
make_all() { # PATHS(of them, that look_path may learn of together) NUMBER:KEY…: runs step_NUMBER of each, then tells what they left
  made_paths=$1 left=0
  shift
  for path in $made_paths; do if [ ! -e "$path" ]; then unsynced="$unsynced $path"; fi; done
  # A time limit ends the step at work; what was made before it is told still.
  trap : TERM
  for step; do
    printf '%s begin %s\n' "$M" "${step%:*}"
    entry=$L/${step#*:}
    gone "$entry/made" || exit 1
    (
      cd "$entry" || exit 1
      "step_${step%:*}"
    ) </dev/null
    code=$?
    [ $code = 0 ] || break
    left=$((left + 1))
  done
  # shellcheck disable=SC2086
  sync_new $unsynced || code=1
  read -r up rest </proc/uptime
  learned_units=
  # shellcheck disable=SC2086
  learn_paths $made_paths
  for one; do
    [ $left -gt 0 ] || break
    left=$((left - 1))
    tell_made "${one%:*}" "${one#*:}"
  done
  [ $code = 0 ] || { printf '%s fail %s %s\n' "$M" "${step%:*}" $code && exit 1; }
}
tell_made() { # NUMBER KEY: what look_NUMBER finds now is what we left
  entry=$L/$2
  { made=$("look_$1") && printf '%s\nwhen=%s\n' "$made" "${up%.*}${up#*.}" >"$entry/made"; } || { printf '%s fail %s look\n' "$M" "$1" && exit 1; }
  printf '%s look 0 %s ours\n%s\n%s seen\n' "$M" "$1" "$made" "$M"
}
tell_held() { # OWNER WORK STEP [HELD]: begins what is found of the thing whose entry is $entry, with whose the entry is
  held=${4:-none}
  if [ -d "$entry" ]; then held=others; fi
  if [ -f "$entry/owners/$1" ]; then held=ours; fi
  printf '%s look %s %s %s\n' "$M" "$2" "$3" $held
}
tell_owned() { # OWNER WORK: the ids of all it holds
  for file in "$L"/*/owners/"$1"; do
    [ -f "$file" ] || continue
    id=
    IFS= read -r id <"${file%/owners/*}/id" || :
    printf '%s owns %s %s\n' "$M" "$2" "$id"
  done
}
applied_for() { # the configuration a thing was last started with by us, where that is noted
  [ -f "$entry/applied" ] || return 0
  IFS= read -r applied <"$entry/applied" || :
  kv applied "$applied"
}
owned_by() { # OWNER: keys of the entries it owns, newest first
  for file in "$L"/*/owners/"$1"; do
    [ -f "$file" ] || continue
    e=${file%/owners/*}
    printf '%s %s\n' "$(cat "$e/n")" "${e##*/}"
  done | sort -rn | sed 's/^[0-9]* //'
}
differs_from() { # FILE STATE KEYS…
  file=$1 now=$2
  shift 2
  for key in "$@"; do
    [ "$(sed -n "s/^$key=//p" "$file")" = "$(printf '%s\n' "$now" | sed -n "s/^$key=//p")" ] || return 0
  done
  return 1
}
changed_since() { # KEYS…: is one of them neither what we left behind nor, after an undo that was cut off, what was before
  [ -s made ] || return 1
  found=$(look) || return 1
  differs_from made "$found" "$@" && differs_from prior "$found" "$@"
}
last_made_by() { # OWNER STACK
  [ -n "$2" ] && [ -f "$L/at.$1" ] && read -r _ stack <"$L/at.$1" && [ "$stack" = "$2" ]
}
release() { # KEY OWNER [STACK]: undo, unless another component wants the thing too; all of STACK goes in this run
  entry=$L/$1 others=
  [ -d "$entry" ] || return 0
  for other in "$entry"/owners/*; do
    other=${other##*/}
    [ -f "$entry/owners/$other" ] && [ "$other" != "$2" ] || continue
    others=yes
    last_made_by "$other" "${3:-}" || { note "kept $(cat "$entry/id"): $other wants it too" && break; }
  done
  if [ -n "$others" ]; then
    rm -f "$entry/owners/$2"
    return 0
  fi
  # The entry keeps its owner to the end, so that after a reboot in the middle the next run finds it again.
  limit=$(sed -n 's/^# seconds \([0-9][0-9]*\)$/\1/p;q' "$entry/undo")
  (cd "$entry" && timeout -k 10 "${limit:-600}" /bin/sh ./undo "$entry" 9>&-) || return
  # What goes at the end, together with others, keeps its record until then.
  [ -e "$entry/due" ] || drop_entry "$entry"
}
drop_entry() { # ENTRY: in one move, as half an entry could not be undone
  rm -rf "$L/.gone" && mv -T "$1" "$L/.gone" && rm -rf "$L/.gone"
}
forget_entry() { # KEY OWNER: leave the thing as it is and drop the record
  for other in "$L/$1"/owners/*; do
    if [ -f "$other" ] && [ "${other##*/}" != "$2" ]; then
      rm -f "$L/$1/owners/$2"
      return 0
    fi
  done
  id=$(cat "$L/$1/id")
  case $id in "package "*) package_stays "${id#package }" ;; esac
  drop_entry "$L/$1"
}
tidy() { # after an undo: shared remains, then the ledger itself when it is empty
  start_again && sweep_packages && sweep_account_locks && sweep_dirs && vacate
}
vacate() { # the ledger itself, when it is empty
  for e in "$L"/*/owners; do [ -d "$e" ] && return 0; done
  if [ -f "$L/dirs" ]; then note "kept folders that are not empty: $(tr '\n' ' ' <"$L/dirs")"; fi
  rm -rf "$L" "$K"/lib.*
  # What another component is uploading just now stays.
  rmdir "$S" "$K" 2>/dev/null || :
}
leave() { # after a make: nothing of ours stays on a host that holds nothing of ours
  for e in "$L"/*/owners; do [ -d "$e" ] && return 0; done
  tidy
}
take_lock() { # OWNER ABOUT WAIT: one changer per host; the lock dies with its holder. Nobody but root may hold it, hence the umask
  waited=
  umask 077
  command exec 9>>/run/kubexm.lock || return 1
  if ! flock -n 9; then
    waited=yes
    read -r holder about </run/kubexm.lock || :
    patience=5
    [ "$holder" = "$1" ] && patience=$3
    if ! flock -w "$patience" 9; then
      say "this host is being changed by $holder $about"
      return 75
    fi
  fi
  printf '%s %s\n' "$1" "$2" >/run/kubexm.lock
}
