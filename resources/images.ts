import { z } from "zod";
import { component } from "../provider/component";
import { sh } from "../provider/shell";
import { crictl, ctr } from "./runtime/paths";

const list = sh`${ctr} -n k8s.io images ls -q`;

export const Images = component({
  kind: "Images",
  about: "Images on a host before anything needs them, three at a time.",
  args: z.object({
    images: z.array(z.string().min(1)).describe("Full names"),
  }),
  steps: ({ images }) => [
    {
      id: "images",
      want: { missing: "none" },
      look: sh`there=$(${list}) || return 1
missing=
for image in ${images}; do printf '%s\n' "$there" | grep -Fxq -e "$image" || missing="$missing $image"; done
[ -n "$missing" ] || missing=none
kv missing "$missing"`,
      save: sh`${list} >had`,
      make: sh`there=$(${list})
for image in ${images}; do printf '%s\n' "$there" | grep -Fxq -e "$image" || printf '%s\n' "$image"; done |
xargs -r -n 1 -P 3 sh -c 'out=$(${crictl} -t 900s pull "$1" 2>&1) && exit; printf "%s: %s\n" "$1" "$(printf "%s\n" "$out" | grep -v level=warning)"; exit 1' pull`,
      undo: sh`systemctl is-active -q containerd || exit 0
${list} | while IFS= read -r image; do grep -Fxq -e "$image" had || ${crictl} rmi "$image" >/dev/null 2>&1 || :; done`,
      timeout: 1800,
    },
  ],
});
