/** What a lab makes on this machine's network, all named after its bridge; and the shell that takes it back, of that bridge only. */

/** Every interface that a lab makes on this machine begins so. */
export const LINK_PREFIX = "kxl";
/** The nftables table of a bridge. */
export const tableName = (bridge: string) => `kubexm_lab_${bridge}`;

/** Ends its routing rules. */
export const rulesBack = (bridge: string): string[] => [
  `while ip rule show | grep -q 'iif ${bridge} '; do`,
  `  ip rule delete preference "$(ip rule show | sed -n 's/^\\([0-9]*\\):.* iif ${bridge} .*/\\1/p' | head -n1)" iif ${bridge} || break`,
  "done",
];

/** Ends its NAT, and its rules in another program's firewall. */
export const forwardingBack = (bridge: string): string[] => [
  `nft delete table ip ${tableName(bridge)} 2>/dev/null || :`,
  ...["-i", "-o"].map(
    (side) =>
      `while iptables-save -t filter 2>/dev/null | grep -q -- '${side} ${bridge} '; do iptables -D FORWARD ${side} ${bridge} -j ACCEPT || break; done`,
  ),
];

/** Ends the bridge itself with all of that; what is gone already is fine. */
export const bridgeBack = (bridge: string): string[] => [
  `ip link delete ${bridge} 2>/dev/null || :`,
  ...rulesBack(bridge),
  ...forwardingBack(bridge),
];
