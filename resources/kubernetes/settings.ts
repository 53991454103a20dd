import { sh } from "../../provider/shell";
import type { Step } from "../../provider/step";
import { watchControlPlane } from "./control-plane-watch";
import { short } from "./member";
import { crictl } from "../runtime/paths";
import { kubeadm, kubeadmConf, kubectl, memberId } from "./paths";

const manifests = sh`cat /etc/kubernetes/manifests/kube-apiserver.yaml /etc/kubernetes/manifests/kube-controller-manager.yaml /etc/kubernetes/manifests/kube-scheduler.yaml 2>/dev/null | sha256sum | cut -c1-16`;

/** Whether a control plane was just made with these settings, so that there is nothing to be done. */
const isFresh = (settings: string) =>
  sh`[ ! -f applied ] && [ "$(cat "$(ledger_of ${memberId})/member" 2>/dev/null)" = ${settings} ]`;

/**
 * A new certificate of the API server in place of the old one, which stays where it is until then: a run that ends in between
 * leaves an API server that can be started. kubeadm makes it only where there is none, so in a folder of its own, signed by
 * the authority that it finds there.
 */
const renewCertificate = sh`
renew_certificate() {
  pki=/etc/kubernetes/pki fresh=$PWD/pki
  gone "$fresh" && (umask 077 && mkdir "$fresh") && ln -s $pki/ca.crt $pki/ca.key "$fresh/" || return 1
  sed "s|^kind: ClusterConfiguration$|&\ncertificatesDir: $fresh|" ${kubeadmConf} >"$fresh/config" || return 1
  ${kubeadm} init phase certs apiserver --config "$fresh/config" >/dev/null || return 1
  mv -f "$fresh/apiserver.key" $pki/ && mv -f "$fresh/apiserver.crt" $pki/ && gone "$fresh"
}`;

/**
 * Waits until kubelet has started what its manifest says now. The others have no word for being ready that a script could ask
 * without a certificate: one that runs for some seconds has understood its arguments.
 */
const awaitNew = sh`
sum_of() { sha256sum <"/etc/kubernetes/manifests/$1.yaml" 2>/dev/null | cut -c1-16; }
running() { ${crictl} ps --name "^$1$" -q | head -n 1; }
await_new() { # NAME SUM-BEFORE ID-BEFORE
  [ "$2" != "$(sum_of "$1")" ] || return 0
  case $1 in kube-apiserver) enough=1 ;; *) enough=4 ;; esac
  left=240 seen=0 last=
  until [ $seen -ge $enough ]; do
    now=$(running "$1")
    if [ -z "$now" ] || [ "$now" = "$3" ]; then seen=0; elif [ "$now" = "$last" ]; then seen=$((seen + 1)); else seen=1; fi
    last=$now left=$((left - 1))
    [ $left -gt 0 ] || { say "kubelet does not keep the new $1 running: see journalctl -u kubelet"; return 1; }
    if [ $((left % 5)) = 0 ] && crashing; then return 1; fi
    sleep 1
  done
}`;

/** A running control plane follows its settings; the next master waits until this one is well again. */
export const controlPlaneSettings = (settings: string): Step => ({
  id: "settings of the control plane",
  want: { applied: settings, manifests: "as made" },
  look: sh`applied_for
if [ "$(cat "$entry/manifests" 2>/dev/null)" = "$(${manifests})" ]; then kv manifests 'as made'; else kv manifests changed; fi`,
  make: sh`${watchControlPlane}
${awaitNew}
${renewCertificate}
if ! { ${isFresh(settings)}; }; then
  before=$(for name in kube-apiserver kube-controller-manager kube-scheduler; do printf '%s %s %s\n' $name "$(sum_of $name)" "$(running $name)"; done)
  renew_certificate
  ${kubeadm} init phase control-plane all --config ${kubeadmConf} >/dev/null
  while read -r name sum id; do await_new "$name" "$sum" "$id" </dev/null || return 1; done <<KX_BEFORE
$before
KX_BEFORE
  await_control_plane 180
  ${kubeadm} init phase upload-config kubeadm --config ${kubeadmConf} >/dev/null
fi
${manifests} >manifests
printf %s ${settings} >applied`,
  undo: sh`:`,
  timeout: 600,
});

/** kube-proxy as it should be, started anew when its settings or the address it finds the API servers at are others. */
export const proxySettings = (settings: unknown, fresh: string): Step => ({
  id: "settings of kube-proxy",
  want: { applied: short(settings) },
  look: sh`applied_for`,
  make: sh`if ! { ${isFresh(fresh)} && [ -f "$(ledger_of ${memberId})/began" ]; }; then
  ${kubeadm} init phase addon kube-proxy --config ${kubeadmConf} >/dev/null
  ${kubectl} -n kube-system rollout restart daemonset kube-proxy >/dev/null
fi
printf %s ${short(settings)} >applied`,
  undo: sh`:`,
});
