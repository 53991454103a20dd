import { fakeHost } from "./fake-host";

/** etc/rpms has a line for each package: name, version, and what it cannot be without. With run/unread it cannot be opened. */
const rpm = `
if [ -e "$ROOT/run/unread" ]; then
  echo "error: cannot open Packages database in /var/lib/rpm" >&2
  case " $* " in *" -qa "* | *--whatprovides*) exit 1 ;; esac
  while [ "$1" != -- ] && [ $# -gt 1 ]; do shift; done
  if [ "$1" = -- ]; then shift; fi
  printf 'package %s is not installed\\n' "$@"
  exit $#
fi
form= names= test=
while [ $# -gt 0 ]; do
  case $1 in --qf) form=$2 && shift ;; --test) test=yes ;; --whatprovides) exit 1 ;; -qa) names=$(cut -d' ' -f1 "$ROOT/etc/rpms") ;; -*) ;; *) names="$names $1" ;; esac
  shift
done
if [ -n "$test" ]; then
  while read -r name version needs; do
    [ -n "$needs" ] || continue
    case " $names " in *" $needs "*) case " $names " in *" $name "*) ;; *) printf '\\t%s is needed by (installed) %s-%s.x86_64\\n' "$needs" "$name" "$version" >&2 ;; esac ;; esac
  done <"$ROOT/etc/rpms"
  exit 1
fi
missing=0
for name in $names; do
  name=\${name%%-[0-9]*.x86_64}
  if [ "$name" = rpm ]; then continue; fi
  line=$(grep "^$name " "$ROOT/etc/rpms") || { missing=$((missing + 1)); echo "package $name is not installed"; continue; }
  version=$(echo "$line" | cut -d' ' -f2)
  printf "$(printf '%s' "$form" | sed "s/%{NAME}/$name/; s/%{VERSION}/\${version%-*}/; s/%{RELEASE}/\${version#*-}/")"
done
exit $missing`;

/** Has every version but 0.9-1; of what is asked for without one, 1.0-1. */
export const dnf = `
drop() { grep -v "^$1 " "$ROOT/etc/rpms" >"$ROOT/new"; mv "$ROOT/new" "$ROOT/etc/rpms"; }
verb=
for word; do
  case $verb-$word in
    -install | -remove | -versionlock) verb=$word ;;
    versionlock-add | versionlock-delete) verb=$word ;;
    *--* | *--*=* | *-y | *-q) ;;
    install-*-0.9-1) exit 1 ;;
    install-*-[0-9]*) name=\${word%-*-*} && drop "$name" && echo "$name \${word#"$name"-}" >>"$ROOT/etc/rpms" ;;
    install-*) echo "$word 1.0-1" >>"$ROOT/etc/rpms" ;;
    remove-*) drop "$word" ;;
    add-*) mkdir -p "$ROOT/etc/dnf/plugins"; echo "$word-0:1.0-1.*" >>"$ROOT/etc/dnf/plugins/versionlock.list" ;;
    delete-*) sed -i "/^$word-/d" "$ROOT/etc/dnf/plugins/versionlock.list" ;;
  esac
done`;

const files = (rpms: string) => ({
  "etc/rpms": rpms,
  "etc/passwd": "root:x:0:0::/root:/bin/sh\nbin:x:1:1::/:/bin/sh\n",
  "etc/group": "root:x:0:\nbin:x:1:\n",
});
export const accounts = { getent: 'grep "^$2:" "$ROOT/etc/$1"', userdel: ":", groupdel: ":" };
export const accountsTaken = (calls: readonly string[]) => calls.filter((call) => /^(user|group)del/.test(call));
export const having = (rpms: string, more: Readonly<Record<string, string>> = {}) =>
  fakeHost(files(rpms), { rpm, dnf, yum: "exit 1", ...more });
export const sorted = (text: string) => text.trim().split("\n").sort();
