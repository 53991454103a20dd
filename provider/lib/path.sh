# Files, folders and links.
learned=
learn_paths() { # PATH…: what look_path is to say of several, by two programs for all; names as the shell knows them only
  learned=
  [ $# -lt 2 ] || learned=$nl$(bulk_path "$@")$nl
}
look_path() { # PATH
  if [ -L "$1" ]; then kv type symlink && kv target "$(readlink -- "$1")"; return; fi
  if [ ! -e "$1" ]; then kv type absent; return; fi
  # Lines of bulk_path: meta TYPE MODE OWNER/GROUP PATH, and for a file SUM  PATH.
  case $learned in
    *" $1$nl"*)
      row=${learned%%" $1$nl"*} row=${row##*"$nl"} && sum=${learned%%"  $1$nl"*} sum=${sum##*"$nl"}
      row=${row#meta * } owner=${row#* }
      meta="mode=${row%% *}${nl}owner=${owner%%/*}${nl}group=${owner#*/}"
      ;;
    *) meta=$(stat -c "mode=%a${nl}owner=%U${nl}group=%G" -- "$1") && sum= || return 1 ;;
  esac
  if [ -f "$1" ]; then
    [ -n "$sum" ] || sum=$(sha256sum <"$1") || return 1
    printf 'type=file\nsha256=%s\n' "${sum%% *}"
  elif [ -d "$1" ]; then kv type directory
  else kv type other; fi
  printf '%s\n' "$meta"
}
need_dir() { # PATH: make a folder, remembering which parts of the path are ours
  [ -d "$1" ] && return 0
  case $1 in
    /*/*) need_dir "${1%/*}" || return 1 ;;
  esac
  printf '%s\n' "$1" >>"$L/dirs" && mkdir -m 755 -- "$1"
}
sweep_dirs() { # remove the folders we made that are empty again; deepest first, as they were made last
  [ -f "$L/dirs" ] || return 0
  tac "$L/dirs" | while IFS= read -r dir; do
    if [ -d "$dir" ] && ! rmdir -- "$dir" 2>/dev/null; then printf '%s\n' "$dir"; fi
  done | tac >"$L/dirs.new" && mv -f "$L/dirs.new" "$L/dirs" || return 1
  [ -s "$L/dirs" ] || rm -f "$L/dirs"
}
real() { # PATH → $file, where it leads, for what is written in its place: a link stays a link
  file=$1
  if [ -L "$1" ]; then file=$(readlink -f -- "$1"); fi
}
beside() { tmp=${1%/*}/.kubexm-${1##*/}; } # PATH → $tmp, a fixed name, so that a killed run leaves at most one
flush() { # PATH: to the disk, before the only other copy of it goes; where a link leads to was not copied
  if [ -L "$1" ]; then return 0
  elif [ -d "$1" ]; then find "$1" -type f -exec sync -- {} +
  elif [ -f "$1" ]; then sync -- "$1"; fi
}
draft() { # PATH COMMAND…: → $tmp, what the command makes of the file, to be moved to $file; where that fails, none is left
  real "$1" && beside "$file" && gone "$tmp" || return 1
  shift
  cp -a -- "$file" "$tmp" && "$@" <"$file" >"$tmp" && return
  rm -f -- "$tmp"
  return 1
}
unsynced= # paths where nothing was: what is put there is synced with what else is made, by sync_new
sync_new() { # PATH…
  for path; do
    shift
    if [ -f "$path" ]; then set -- "$@" "$path"; fi
  done
  [ $# -eq 0 ] || sync -- "$@"
}
move() { # TMP PATH: rename over, or write into a file that is itself a mount (as in containers)
  case " $unsynced " in *" $2 "*) ;; *) flush "$1" || return 1 ;; esac
  mv -fT -- "$1" "$2" 2>/dev/null && return
  if [ ! -L "$1" ] && grep -qsF " $2 " /proc/self/mounts; then
    cat -- "$1" >"$2" && chown --reference="$1" -- "$2" && chmod --reference="$1" -- "$2" && sync -- "$2" && rm -f -- "$1"
  else mv -fT -- "$1" "$2"; fi
}
is_owned() { # PATH OWNER:GROUP: nothing is to be done where root's own file is to be root's
  [ "$2" = root:root ] && [ -O "$1" ] && [ -G "$1" ]
}
settle() { # TMP PATH MODE OWNER:GROUP: put a finished file in its place, atomically
  if { is_owned "$1" "$4" || chown -- "$4" "$1"; } && chmod -- "$3" "$1" && move "$1" "$2"; then
    if command -v restorecon >/dev/null 2>&1; then restorecon -- "$2" 2>/dev/null || :; fi
  else
    rm -f -- "$1"
    return 1
  fi
}
put_file() { # PATH MODE OWNER:GROUP COMMAND…: with what the command prints
  need_dir "${1%/*}" || return 1
  beside "$1"
  put_path=$1 put_mode=$2 put_owner=$3 put_tmp=$tmp put_code=1
  shift 3
  # What it holds may be for its owner alone.
  umask 077
  if gone "$put_tmp" && "$@" >"$put_tmp"; then put_code=0; fi
  umask 022
  if [ $put_code = 0 ]; then settle "$put_tmp" "$put_path" "$put_mode" "$put_owner"; else
    full_disk "${put_path%/*}"
    rm -f -- "$put_tmp"
    return 1
  fi
}
put_link() { # PATH TARGET
  need_dir "${1%/*}" || return 1
  beside "$1"
  gone "$tmp" && ln -s -- "$2" "$tmp" && mv -fT -- "$tmp" "$1"
}
save_path() { # PATH: keep what stands there now in the ledger entry, which is none before it is whole
  if [ -e "$1" ] || [ -L "$1" ]; then cp -a -- "$1" body; fi
}
put_back() { # COPY PATH
  beside "$2"
  gone "$tmp" && cp -a -- "$1" "$tmp" && move "$tmp" "$2" && return
  gone "$tmp"
  return 1
}
set_aside() { # PATH FOLDER: moved into a folder of the entry
  mkdir -p -- "$2" && put_back "$1" "$2/${1##*/}" && sync -- "$2" && rm -rf -- "$1"
}
keep_beside() { # PATH: the original, beside what somebody else made of our file; those who call it end well after it
  if [ -e body ] || [ -L body ]; then put_back body "$1.before-kubexm" || exit 1; else return 0; fi
  note "its original is $1.before-kubexm"
}
restore_path() { # PATH
  beside "$1"
  gone "$tmp"
  if [ "$(was type)" = absent ]; then
    rm -f -- "$1"
    return
  fi
  if [ ! -e body ] && [ ! -L body ]; then
    say "the saved copy of $1 is missing in $entry"
    return 1
  fi
  if [ ! -d "${1%/*}" ]; then
    note "its folder is gone, so $1 was not put back"
    return 0
  fi
  put_back body "$1"
}
undo_dir() { # PATH
  if [ "$(was type)" = absent ]; then
    if [ -d "$1" ] && ! rmdir -- "$1" 2>/dev/null; then note "kept $1: it is not empty"; fi
  else chown -- "$(was owner):$(was group)" "$1" && chmod -- "$(was mode)" "$1"; fi
}
open_to_all() { # PATH: may everybody on the host read it, and come to where it is
  file=$(readlink -f -- "$1") || return 1
  case $(stat -c %a -- "$file") in *[4-7]) ;; *) return 1 ;; esac
  set --
  while file=${file%/*} && [ -n "$file" ]; do set -- "$@" "$file"; done
  [ $# -eq 0 ] || ! stat -c %a -- "$@" | grep -q '[0246]$'
}
tell_file() { open_to_all "$1" && cat -- "$1"; } # PATH
read_block() { # PATH BEGIN END → $inside, $body, and $open where its last line has no end
  inside=before body='' open=
  if [ -e "$1" ]; then
    while IFS= read -r line || { [ -n "$line" ] && open=yes; }; do
      case $inside-$line in
        "before-$2") inside=in ;;
        "in-$3") inside=after ;;
        "after-$2") inside=several ;;
        in-*) body=$body$line$nl ;;
      esac
    done <"$1"
  fi
}
read_whole() { # PATH: all of it is inside → $inside, $body
  inside=before body=
  [ -f "$1" ] || return 0
  inside=after
  while IFS= read -r line || [ -n "$line" ]; do body=$body$line$nl; done <"$1"
}
tell_block() { open_to_all "$1" && read_block "$@" && printf %s "$body"; } # PATH BEGIN END
look_block() { # PATH BEGIN END
  # One without a record was left behind by another cluster.
  if [ -d "$entry" ]; then kv recorded yes; else kv recorded no; fi
  read_block "$@" || return 1
  case $inside in
    before) kv block absent ;;
    several) kv block several ;;
    after) sum=$(printf %s "$body" | sha256sum) && kv block "${sum%% *}" ;;
    in) unended_block "$@" || return 1 ;;
  esac
}
unended_block() { # PATH BEGIN END: all that follows is the block's, or somebody else's
  say "$1 has the line '$2' but no line '$3' after it: write that below the last line of the block, or take out all from '$2' to there"
  return 1
}
put_block() { # PATH BEGIN END CONTENT PLACE(top: a new one goes before all else)
  real "$1" && need_dir "${file%/*}" || return 1
  beside "$file"
  gone "$tmp" && gone "$tmp.in" && read_block "$file" "$2" "$3" || return 1
  if draft_block "$file" "$2" "$3" "$2$nl$4$3" "${5:-}" && gone "$tmp.in"; then move "$tmp" "$file"; else
    full_disk "${file%/*}"
    rm -f -- "$tmp" "$tmp.in"
    return 1
  fi
}
draft_block() { # FILE BEGIN END BLOCK PLACE: → $tmp, the file with it, given what read_block says
  if [ -e "$1" ]; then cp -a -- "$1" "$tmp"; else : >"$tmp" && chmod 644 "$tmp"; fi || return 1
  case $inside in
    before) ;;
    after)
      printf '%s\n' "$4" >"$tmp.in" && sed "/^$2\$/,/^$3\$/{
/^$3\$/r $tmp.in
d
}" "$1" >"$tmp"
      return
      ;;
    several) open='' && sed "/^$2\$/,/^$3\$/d" "$1" >"$tmp" || return 1 ;;
    in) unended_block "$@" || return 1 ;;
  esac
  if [ "$5" = top ]; then { printf '%s\n' "$4" && cat -- "$tmp"; } >"$tmp.in" && cat -- "$tmp.in" >"$tmp"
  else { if [ -n "$open" ]; then echo; fi && printf '%s\n' "$4"; } >>"$tmp"; fi
}
save_block() { # PATH BEGIN END: what is needed to leave no trace
  read_block "$@" || return 1
  if [ "$inside" != before ]; then note "$1 had a block of another cluster: it is replaced, and goes with destroy"; fi
  if [ ! -e "$1" ]; then : >no-file; elif [ -n "$open" ]; then : >no-newline; fi
}
undo_block() { # PATH BEGIN END
  real "$1" || return 1
  set -- "$file" "$2" "$3"
  beside "$1"
  rm -f -- "$tmp" "$tmp.in"
  read_block "$@" || return 1
  case $inside in before) return 0 ;; in) unended_block "$@" || return 1 ;; esac
  draft "$1" sed "/^$2\$/,/^$3\$/d" || return 1
  # The newline before our block was ours too, unless other lines follow by now.
  if [ -f no-newline ] && [ -s "$tmp" ] && [ "$(tail -n 1 -- "$1")" = "$3" ]; then truncate -s -1 -- "$tmp" || return 1; fi
  if [ -f no-file ] && [ ! -s "$tmp" ]; then rm -f -- "$tmp" "$1"; else move "$tmp" "$1"; fi
}
after_unit_file() { # PATH: systemd must hear of a changed unit file; in a run of ours once for several
  case $1 in
    /etc/systemd/system/* | /usr/lib/systemd/system/* | /lib/systemd/system/*)
      if [ -n "${M:-}" ]; then : >"$L/reload"; else systemctl daemon-reload; fi
      ;;
  esac
}
