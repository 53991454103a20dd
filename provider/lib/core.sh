# Functions for every piece of a step: POSIX sh, coreutils and sed only.
# Kept on the host beside the ledger, so that an undo can run there without kubexm.
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
K=/var/lib/kubexm L=/var/lib/kubexm/ledger S=/var/lib/kubexm/staging
nl='
'

kv() { # KEY VALUE: one observed word
  case $2 in
    *"$nl"*) printf '%s=%s\n' "$1" "$(printf %s "$2" | tr '\n' ' ')" ;;
    *) printf '%s=%s\n' "$1" "$2" ;;
  esac
}
say() { printf '%s\n' "$*" >&2; }
full_disk() { # FOLDER: the shell's own words for it are "I/O error"
  free=$(df -P -k -- "$1" 2>/dev/null | sed -n '2s/^.* \([0-9][0-9]*\)  *[0-9]*% .*$/\1/p')
  [ "${free:-64}" -ge 64 ] || say "No space left on device: $free KiB are free for $1"
}
note() { printf '%s note %s\n' "$M" "$*"; } # a line for the person, kept apart from errors
was() { sed -n "s/^$1=//p" "$entry/prior"; } # KEY: its value before our first change
says() { # FILE LINE: is that its first line; of a file that is not there it is empty
  it=
  [ ! -f "$1" ] || IFS= read -r it <"$1" || :
  [ "$it" = "$2" ]
}
gone() { # PATH…: removed, at no cost where there is nothing
  for it; do
    if [ -e "$it" ] || [ -L "$it" ]; then rm -rf -- "$it" || return 1; fi
  done
}
