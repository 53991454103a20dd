# What packages of ours leave: the file `due` in the entry of one that goes has its name, and this run takes all of them
# together, with what came along with them. A run that breaks off keeps the entries; the next one begins without `due`.
cross_out() { # FILE NAMES: those lines go, and the file with the last
  [ -f "$1" ] || return 0
  grep -vxF -e "$2" "$1" >"$1.new" || [ $? = 1 ] || return 1
  if [ -s "$1.new" ]; then synced "$1.new" && mv -f "$1.new" "$1"; else rm -f "$1.new" "$1"; fi
}
wanted_packages() { # those with an entry that stays
  for file in $(grep -ls '^package ' "$L"/*/id); do
    [ -e "${file%/id}/due" ] || own_name "$(sed 's/^package //' "$file")" || return 1
  done
}
remains() { # NAME: of a package that goes, is there anything; 2: that cannot be told
  by_apt || {
    package_is_there "$1" ''
    return
  }
  # One that dpkg was killed over is neither installed nor gone.
  states=$(dpkg-query -W -f '${db:Status-Status}\n' -- "$1" 2>/dev/null) || [ $? = 1 ] || return 2
  if grep -qsxF -e "$1" "$L/configs"; then states=$(printf '%s\n' "$states" | grep -vx config-files); fi
  printf '%s\n' "$states" | grep -vx not-installed | grep -q .
}
removal_of() { # NAME…: what apt would remove
  # shellcheck disable=SC2068
  $apt -s purge $@ 2>/dev/null | sed -n 's/^Purg \([^ :]*\).*/\1/p'
}
needing() { # NAMES: installed packages of rpm that cannot be without them
  # shellcheck disable=SC2086
  rpm -e --test -- $1 2>&1 | sed -n 's/.* is needed by (installed) //p' | while read -r full; do rpm -q --qf '%{NAME}\n' -- "$full"; done
}
needed_by() { # NAMES SET: who outside of SET would have to go with them
  case $(manager) in apt) others=$(removal_of "$1") ;; *) others=$(needing "$1") ;; esac
  for other in $others; do
    case " $2 " in *" $other "*) ;; *) printf '%s\n' "$other" && return ;; esac
  done
}
purge() { # NAME…: with their configuration, unless it was there before them
  case $(manager) in
    apt)
      older=
      for name; do
        shift
        if grep -qsxF -e "$name" "$L/configs"; then older="$older $name"; else set -- "$@" "$name"; fi
      done
      # shellcheck disable=SC2086
      [ -z "$older" ] || quietly $apt remove $older || return 1
      # shellcheck disable=SC2086
      [ $# = 0 ] || quietly $apt purge "$@"
      ;;
    *) quietly dnf -y --setopt=clean_requirements_on_remove=False remove "$@" || quietly yum -y remove "$@" ;;
  esac
}
bring_back() { # NAME: without any other going for it
  case $(manager) in
    apt)
      more="--no-install-recommends --no-remove"
      # shellcheck disable=SC2086
      quietly $apt install $more "$1" || { quietly $apt update && quietly $apt install $more "$1"; }
      ;;
    *) quietly dnf -y install "$1" || quietly yum -y install "$1" ;;
  esac
}
keep_accounts() { # nobody knows which of them a package that stays is for
  [ -f "$L/accounts" ] || return 0
  kept=$(sed 's/^. //' "$L/accounts" | sort -u | paste -sd ' ' -)
  rm -f "$L/accounts"
  [ -z "$kept" ] || note "kept users and groups that came with packages: $kept"
}
pick_going() { # NAMES WANTED → $going, and of the others $waiting for one that is wanted itself
  going=$1 waiting='' kept=''
  blocked=$going
  while [ -n "$blocked" ] && [ -n "$going" ]; do
    blocked=
    [ -n "$(needed_by "$going" "$going")" ] || break
    for name in $going; do
      other=$(needed_by "$name" "$going")
      [ -n "$other" ] || continue
      blocked="$blocked $name"
      if printf '%s\n' "$2" | grep -qxF -e "$other"; then waiting="$waiting $name"; else
        note "kept package $name: $other needs it"
        kept=yes
      fi
    done
    left=
    for name in $going; do case "$blocked " in *" $name "*) ;; *) left="$left $name" ;; esac; done
    going=$left
  done
  [ -z "$kept" ] || keep_accounts
}
take_packages() { # WANTED: to ask apt about each takes seconds: what came along is judged when the last of them goes
  package_turn || return 1
  judged=$({ cat "$L"/*/due; [ -n "$1" ] || cat "$L/packages"; } 2>/dev/null | grep -vxF -e "$1" | sort -u)
  there=
  for name in $judged; do
    code=0
    remains "$name" || code=$?
    case $code in 0) there="$there $name" ;; 1) ;; *) return 1 ;; esac
  done
  pick_going "$there" "$1"
  # shellcheck disable=SC2086
  if [ -n "$going" ]; then purge $going 2>&1 || return 1; fi
  # shellcheck disable=SC2086
  waiting=$(printf '%s\n' $waiting)
  judged=$(printf '%s\n' "$judged" | grep -vxF -e "$waiting")
  cross_out "$L/packages" "$judged" && cross_out "$L/configs" "$judged" || return 1
  if [ -n "$waiting" ]; then printf '%s\n' "$waiting" >>"$L/packages" && synced "$L/packages" || return 1; fi
  for file in "$L"/*/due; do
    if [ -e "$file" ]; then drop_entry "${file%/due}" || return 1; fi
  done
}
due() { # is anything? An older version had a list of them
  for file in "$L"/*/due "$L/packages.due"; do [ -e "$file" ] && return 0; done
  return 1
}
sweep_packages() { # what we brought and nobody asks for any more; what others need stays
  wanted=$(wanted_packages) || return 1
  if due; then take_packages "$wanted" || return 1; fi
  [ -z "$wanted" ] || return 0
  rm -f "$L/packages.due"
  if [ -f "$L/gave-way" ]; then
    list_packages "$L/now" || return 1
    sort -u "$L/gave-way" | while read -r name mark; do
      if grep -qxF -e "$name" "$L/now"; then continue; fi
      if bring_back "$name" </dev/null; then
        if by_apt; then apt-mark "$mark" "$name" >/dev/null; fi
      else note "package $name, which had to give way to ours, could not be installed again"; fi
    done
    rm -f "$L/gave-way"
  fi
  if [ -f "$L/accounts" ]; then
    while read -r kind name; do
      case $kind in
        u) if getent passwd "$name" >/dev/null; then userdel "$name" >/dev/null 2>&1 || note "kept user $name"; fi ;;
        g) if getent group "$name" >/dev/null; then groupdel "$name" >/dev/null 2>&1 || note "kept group $name"; fi ;;
      esac
    done <"$L/accounts"
    rm -f "$L/accounts"
  fi
}
