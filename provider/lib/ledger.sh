# The ledger: one folder per changed thing, named by the hash of its id. In it: id, n (order), prior (state before the
# first change), body (copy of what stood there), made (state we left), undo (script), owners/ (components that want it).

record() { # KEY ID OWNER LOOK SAVE UNDO (three function names): before the first change, once
  entry=$L/$1
  if [ -d "$entry" ]; then
    : >"$entry/owners/$3"
    return
  fi
  new=$L/.new
  rm -rf "$new"
  mkdir -p "$new/owners" && (
    set -e
    entry=$new
    cd "$new"
    printf '%s' "$2" >id
    "$4" >prior
    "$5"
    "$6" >undo
    last=$(cat "$L/last" 2>/dev/null || echo 0)
    printf '%s' "$((last + 1))" >n
    printf '%s' "$((last + 1))" >"$L/last"
    : >"owners/$3"
    sync -- prior undo n id . 2>/dev/null || sync
  ) || return 1
  mv -T "$new" "$entry" && sync -- "$L" 2>/dev/null
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
changed_since() { # KEYS…: which of them differ from what we left behind
  [ -f made ] || return 1
  now=$(look) || return 1
  for key in "$@"; do
    old=$(sed -n "s/^$key=//p" made)
    cur=$(printf '%s\n' "$now" | sed -n "s/^$key=//p")
    [ "$old" = "$cur" ] || return 0
  done
  return 1
}
release() { # KEY OWNER: undo, unless another component wants the thing too
  entry=$L/$1
  [ -d "$entry" ] || return 0
  rm -f "$entry/owners/$2"
  for other in "$entry"/owners/*; do
    if [ -f "$other" ]; then
      note "kept $(cat "$entry/id"): ${other##*/} wants it too"
      return 0
    fi
  done
  # Its owner's mark comes back if the undo fails, so that the next run finds the entry again.
  if (cd "$entry" && timeout -k 10 600 /bin/sh ./undo "$entry"); then rm -rf "$entry"; else
    code=$?
    : >"$entry/owners/$2"
    return $code
  fi
}
forget_entry() { # KEY OWNER: leave the thing as it is and drop the record
  rm -f "$L/$1/owners/$2"
  rmdir "$L/$1/owners" 2>/dev/null && rm -rf "${L:?}/$1"
  return 0
}
tidy() { # after an undo: shared remains, then the ledger itself when it is empty
  start_again && sweep_packages && sweep_dirs || return 1
  for e in "$L"/*/owners; do [ -d "$e" ] && return 0; done
  if [ -f "$L/dirs" ]; then note "kept folders that others use: $(tr '\n' ' ' <"$L/dirs")"; fi
  rm -rf "$K"
}
take_lock() { # OWNER ABOUT WAIT: one changer per host; the lock dies with its holder
  exec 9>>/run/kubexm.lock || return 1
  if ! flock -n 9; then
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
