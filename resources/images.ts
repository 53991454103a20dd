import { basename } from "node:path";
import { z } from "zod";
import { component } from "../provider/component";
import { sh, type Command } from "../provider/shell";
import type { Step } from "../provider/step";
import { bodyOf } from "../provider/steps";
import { crictl, ctr } from "./runtime/paths";

/** As `docker save` and `ctr images export` write it. */
const imageArchive = z
  .object({
    path: z.string().describe("On the machine that runs kubexm"),
    sha256: z.string(),
    images: z.array(z.string()).describe("Full names of what it holds"),
  })
  .strict();

export type ImageArchive = z.output<typeof imageArchive>;

const list = sh`${ctr} -n k8s.io images ls -q`;

/** These images are there. What is there before the first of them comes is recorded by the step that stays for good. */
const present = (id: string, images: readonly string[], make: Command): Step => ({
  id,
  group: "images",
  want: { missing: "none" },
  look: sh`there=$(${list}) || { kv missing unknown; return 0; }
missing=
for image in ${images}; do printf '%s\n' "$there" | grep -Fxq -e "$image" || missing="$missing $image"; done
[ -n "$missing" ] || missing=none
kv missing "$missing"`,
  make,
  undo: sh`:`,
  timeout: 1800,
});

/** What came with it goes again in the end. */
const recorded = (step: Step): Step => ({
  ...step,
  save: sh`${list} >had`,
  undo: sh`systemctl is-active -q containerd || exit 0
${list} | while IFS= read -r image; do grep -Fxq -e "$image" had || ${crictl} rmi "$image" >/dev/null 2>&1 || :; done`,
});

/** Sent only to hosts that want something of it and do not have that. */
function unpacked({ path, sha256, images }: ImageArchive, wanted: readonly string[]): Step[] {
  const own = images.filter((image) => wanted.includes(image));
  if (own.length === 0) return [];
  const make = sh`${ctr} -n k8s.io images import "$S/"${sha256} >/dev/null`;
  const id = `images of ${basename(path)} ${sha256.slice(0, 8)}`;
  return [{ ...present(id, own, make), bodies: [bodyOf({ path, sha256 })] }];
}

export const Images = component({
  kind: "Images",
  about: "Images on a host before anything needs them: from archives, the others from registries, three at a time.",
  args: z.object({
    images: z.array(z.string().min(1)).describe("Full names"),
    archives: z.array(imageArchive).default([]).describe("Archives that hold some of them"),
  }),
  steps: ({ images, archives }) => [
    ...archives.flatMap((archive) => unpacked(archive, images)),
    recorded(
      present(
        "images",
        images,
        sh`there=$(${list})
for image in ${images}; do printf '%s\n' "$there" | grep -Fxq -e "$image" || printf '%s\n' "$image"; done |
xargs -r -n 1 -P 3 sh -c 'out=$(${crictl} -t 900s pull "$1" 2>&1) && exit; printf "%s: %s\n" "$1" "$(printf "%s\n" "$out" | grep -v level=warning)"; exit 1' pull`,
      ),
    ),
  ],
});
