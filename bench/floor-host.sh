#!/bin/sh
# The part of bench/floor.sh that runs on a host, beside its files.
set -e
PATH=/usr/local/sbin:/usr/local/bin:$PATH
export DEBIAN_FRONTEND=noninteractive KUBECONFIG=/etc/kubernetes/admin.conf
cd "${0%/*}"

quietly() { "$@" >log 2>&1 || { tail -n 20 log >&2; return 1; }; }

missing() { # PACKAGE…
  for name; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || printf '%s ' "$name"
  done
}

prepare() {
  tar -C / --no-overwrite-dir -xf etc.tar
  packages=$(missing $(cat packages))
  # shellcheck disable=SC2086
  [ -z "$packages" ] || quietly apt-get -y -q --no-install-recommends install $packages
  quietly systemctl enable --now chrony
  modprobe -a $(cat /etc/modules-load.d/kubexm.conf) 2>/dev/null || :
  # The lab's hosts are containers: the other parameters are the machine's, and kubexm leaves them, too.
  grep '^net\.' /etc/sysctl.d/99-kubexm-cri.conf | quietly sysctl -e -q -p - || :
  mkdir -p /opt/cni/bin
  tar -C /opt/cni/bin --no-same-owner -xf cni-plugins
  tar -C /usr/local --no-same-owner -xf containerd
  tar -C /usr/local/bin --no-same-owner -xf crictl
  mkdir -p /usr/local/sbin
  install -m 755 runc /usr/local/sbin/runc
  # Where the three are one program, it came once.
  for name in kubeadm kubectl kubelet; do
    file=$name
    [ -e "$file" ] || file=kubeadm
    install -m 755 "$file" "/usr/local/bin/$name"
  done
  systemctl daemon-reload
  quietly systemctl enable --now containerd
  quietly systemctl enable kubelet
  until crictl info >/dev/null 2>&1; do sleep 0.2; done
  quietly xargs -n 1 -P 3 crictl pull <images
}

init() {
  quietly kubeadm init --config /etc/kubernetes/kubexm.yaml --skip-token-print --skip-phases=show-join-command
  quietly kubectl apply --server-side -f objects.yaml
}

lend() { # for a joining host: what it needs to be let in
  # shellcheck disable=SC2046
  set -- $(kubeadm token create --ttl 15m --print-join-command)
  printf 'token=%s\nhash=%s\nkeys=%s\n' "$5" "$7" "$(tar -C /etc/kubernetes/pki -cf - ca.crt ca.key sa.key sa.pub \
    front-proxy-ca.crt front-proxy-ca.key etcd/ca.crt etcd/ca.key | base64 -w 0)"
}

join() {
  lent=$(cat)
  part() { printf '%s\n' "$lent" | sed -n "s/^$1=//p"; }
  if grep -q '^controlPlane:' join.yaml; then
    mkdir -p /etc/kubernetes/pki
    part keys | base64 -d | tar -C /etc/kubernetes/pki --no-same-owner -xf -
  fi
  sed -i "s/@TOKEN@/$(part token)/; s/@HASH@/$(part hash)/" join.yaml
  quietly kubeadm join --config join.yaml
}

settle() { # WORKER…: ends when every node is ready
  for worker; do
    # It may have joined and not said so yet.
    until kubectl get node "$worker" >/dev/null 2>&1; do sleep 0.1; done
    kubectl label node "$worker" node-role.kubernetes.io/worker= >/dev/null
  done
  kubectl wait node --all --for=condition=Ready --timeout=180s >/dev/null
  cat "$KUBECONFIG"
}

"$@"
