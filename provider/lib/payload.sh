# Things whose content came by itself: programs and archives.
stamp_of() { stat -c '%d:%i:%s:%Y:%Z' -- "$1"; }
look_binary() { # PATH: hashing 100 MB at every look costs seconds, so an untouched inode is taken at its word
  if [ -f "$1" ] && [ ! -L "$1" ] && [ -f "$entry/stamp" ]; then
    read -r stamp sum <"$entry/stamp"
    if [ "$stamp" = "$(stamp_of "$1")" ]; then
      kv type file && kv sha256 "$sum" && stat -c "mode=%a${nl}owner=%U${nl}group=%G" -- "$1"
      return
    fi
  fi
  look_path "$1"
}
put_staged() { # SHA256 PATH MODE OWNER:GROUP: moved there, unless another step needs it too
  need_dir "${2%/*}" || return 1
  real "$S/$1" && beside "$2" && gone "$tmp" || return 1
  case " $shared " in *" $1 "*) take='cp --' ;; *) take='mv -T --' ;; esac
  $take "$file" "$tmp" && settle "$tmp" "$2" "$3" "$4" || return 1
  printf '%s %s\n' "$(stamp_of "$2")" "$1" >stamp
}
unstage() { # FOLDER: what came and was not used, also where it waits on another file system, and half of it
  for it in "$1"/*; do
    [ -L "$it" ] || continue
    at=$(readlink -- "$it")
    rm -f -- "$at" "${at%/*}/.${at##*/}".*
  done
  gone "$1"
}
probe_staged() { # SHA256 SAYS ARGUMENTS…: a program for another machine or C library shows before it replaces the old one
  sum=$1 says=$2
  shift 2
  chmod 700 "$S/$sum" || return 1
  answer=$("$S/$sum" "$@" 2>&1 </dev/null) || { say "it does not run here: $answer"; return 1; }
  case $answer in *"$says"*) ;; *) say "it says '$answer' where '$says' was expected" && return 1 ;; esac
}
manifest() { # ROOT LIST: what is there of the listed files, without reading them
  (cd -- "$1" 2>/dev/null && while IFS= read -r name; do stat -c '%n %s %Y %a %u %g %F' -- "$name" 2>/dev/null || printf '%s absent\n' "$name"; done) <"$2" | sha256sum | sed 's/ .*//'
}
look_archive() { # ROOT
  if [ ! -f "$entry/archive" ]; then kv archive absent; return; fi
  read -r sum seal <"$entry/archive"
  if [ "$seal" = "$(manifest "$1" "$entry/files")" ]; then kv archive "$sum"; else kv archive modified; fi
}
put_archive() { # SHA256 ROOT STRIP MEMBERS…: unpacked beside, then renamed file by file
  sum=$1 root=$2 strip=$3
  shift 3
  need_dir "$root" || return 1
  beside=$root/.kubexm-unpack
  rm -rf -- "$beside" && mkdir -- "$beside" || return 1
  if ! tar -xf "$S/$sum" -C "$beside" --no-same-owner --strip-components="$strip" "$@"; then rm -rf -- "$beside"; return 1; fi
  (cd -- "$beside" && find . ! -type d | sed 's#^\./##' | LC_ALL=C sort) >files.new || return 1
  # What our files replace, and the list of all we ever put there: both are needed to go back.
  save_replaced "$root" || return 1
  cat files.new files ever 2>/dev/null | LC_ALL=C sort -u >ever.new && sync -- ever.new && mv -f ever.new ever && sync -- . || return 1
  if [ -f files ]; then # of an earlier version
    LC_ALL=C comm -23 files files.new | while IFS= read -r name; do rm -f -- "$root/$name"; done
  fi
  while IFS= read -r name; do
    case $name in */*) need_dir "$root/${name%/*}" || return 1 ;; esac
    chown -h 0:0 -- "$beside/$name" && mv -fT -- "$beside/$name" "$root/$name" || return 1
  done <files.new
  rm -rf -- "$beside"
  mv -f files.new files
  sync -f "$root" 2>/dev/null || sync
  printf '%s %s\n' "$sum" "$(manifest "$root" files)" >archive
}
save_replaced() { # ROOT: into had and had.tar, what stands where files come to be that were never ours
  known=ever
  [ -f ever ] || known=/dev/null
  comm -23 files.new $known >first || return 1
  (cd -- "$1" && while IFS= read -r name; do
    if [ -e "$name" ] || [ -L "$name" ]; then printf '%s\n' "$name" || exit 1; fi
  done) <first >theirs || return 1
  [ -s theirs ] || return 0
  verb=-c
  if [ -f had.tar ]; then cp -- had.tar had.tar.new && verb=-r || return 1; fi
  [ -f had ] || : >had
  tar $verb -f had.tar.new -C "$1" --no-recursion -T theirs && cat had theirs >had.new && sync -- had.tar.new had.new &&
    mv -f had.tar.new had.tar && mv -f had.new had
}
undo_archive() { # ROOT
  rm -rf -- "$1/.kubexm-unpack"
  [ -f ever ] && while IFS= read -r name; do rm -f -- "$1/$name"; done <ever
  if [ -s had ] && [ -f had.tar ] && [ -d "$1" ]; then tar -xpf had.tar -C "$1" && { sync -f "$1" 2>/dev/null || sync; } || return 1; fi
  return 0
}
