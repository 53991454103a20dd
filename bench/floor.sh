#!/bin/sh
# What `kubexm up` does, by plain OpenSSH, knowing everything beforehand and checking nothing: the files of each host lie
# ready in $KIT/HOST. All hosts are prepared at once; then further masters join one by one, and workers beside them.
# $FIRST is the first master, which begins the cluster if $BEGIN is yes; $MASTERS and $WORKERS are those that join.
set -e
umask 077

secure() { # ssh|scp ARGUMENT…
  program=$1
  shift
  "$program" -F "$SSH_CONFIG" -o KexAlgorithms="$KEX" -o BatchMode=yes "$@"
}
on() { # HOST VERB [ARGUMENT…]
  host=$1
  shift
  secure ssh "$host" sh /var/tmp/floor/host.sh "$@"
}
prepare() { secure scp -q -r "$KIT/$1" "$1:/var/tmp/floor" && on "$1" prepare; } # HOST
prepared() { eval "wait \$prepared_$1"; }                                        # HOST

new="$MASTERS $WORKERS"
[ "$BEGIN" = no ] || new="$FIRST $new"
for host in $new; do
  prepare "$host" </dev/null &
  eval "prepared_$host=\$!"
done

if [ "$BEGIN" = yes ]; then
  prepared "$FIRST"
  on "$FIRST" init </dev/null
fi
on "$FIRST" lend </dev/null >"$KIT/lent"

joining=
for worker in $WORKERS; do
  prepared "$worker"
  on "$worker" join <"$KIT/lent" &
  joining="$joining $!"
done
for master in $MASTERS; do
  prepared "$master"
  on "$master" join <"$KIT/lent"
done
for pid in $joining; do wait "$pid"; done
# shellcheck disable=SC2086
on "$FIRST" settle $WORKERS </dev/null >"$KIT/kubeconfig"
