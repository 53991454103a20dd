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
  mkdir -p "$new/owners" || return 1
  # Nothing may be changed that was not saved: `set -e` says nothing inside `||`, hence the chain.
  (
    entry=$new
    last=$(sort -n "$L"/*/n 2>/dev/null | tail -n 1)
    cd "$new" && prior=$("$4") && printf '%s\n' "$prior" >prior && "$5" && "$6" >undo &&
      printf '%s' "$2" >id && printf '%s\n' "$((${last:-0} + 1))" >n && : >"owners/$3" &&
      { sync -- prior undo n id . 2>/dev/null || sync; }
  ) || return 1
  mv -T "$new" "$entry" && sync -- "$L" 2>/dev/null
}
entry_of() { # ID: its folder
  key=$(printf %s "$1" | sha256sum)
  printf '%s/%.16s' "$L" "$key"
}
is_ours() { [ -d "$(entry_of "$1")" ]; } # ID
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
  [ -f made ] || return 1
  found=$(look) || return 1
  differs_from made "$found" "$@" && differs_from prior "$found" "$@"
}
release() { # KEY OWNER: undo, unless another component wants the thing too
  entry=$L/$1
  [ -d "$entry" ] || return 0
  for other in "$entry"/owners/*; do
    if [ -f "$other" ] && [ "${other##*/}" != "$2" ]; then
      note "kept $(cat "$entry/id"): ${other##*/} wants it too"
      rm -f "$entry/owners/$2"
      return 0
    fi
  done
  # The entry keeps its owner to the end, so that after a reboot in the middle the next run finds it again.
  (cd "$entry" && timeout -k 10 600 /bin/sh ./undo "$entry") || return
  drop_entry "$entry"
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
  # The package stays, so the accounts it brought stay too.
  case $(cat "$L/$1/id") in "package "*) rm -f "$L/accounts" ;; esac
  drop_entry "$L/$1"
}
tidy() { # after an undo: shared remains, then the ledger itself when it is empty
  start_again && sweep_packages && sweep_dirs || return 1
  for e in "$L"/*/owners; do [ -d "$e" ] && return 0; done
  if [ -f "$L/dirs" ]; then note "kept folders that others use: $(tr '\n' ' ' <"$L/dirs")"; fi
  rm -rf "$L" "$K"/lib.*
  # What another component is uploading just now stays.
  rmdir "$S" "$K" 2>/dev/null || :
}
leave() { # after a make: nothing of ours stays on a host that holds nothing of ours
  for e in "$L"/*/owners; do [ -d "$e" ] && return 0; done
  tidy
}
take_lock() { # OWNER ABOUT WAIT: one changer per host; the lock dies with its holder
  waited=
  exec 9>>/run/kubexm.lock || return 1
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
