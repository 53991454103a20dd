import { createHash } from "node:crypto";
import { sh } from "../shell";
import type { Step } from "../step";
import { checkedPath, checkedWord } from "./checked";
import { block } from "./block";

export interface MountOptions {
  source: string;
  type: string;
  options?: string;
}

/** A file system mounted here, now and after every boot. */
export function mount(path: string, { source, type, options = "defaults" }: MountOptions): Step[] {
  checkedPath(path);
  for (const word of [source, type, options]) checkedWord(word);
  const name = `kubexm mount ${createHash("sha256").update(path).digest("hex").slice(0, 8)}`;
  const escaped = (word: string) => word.replaceAll(" ", "\\040");
  const how = createHash("sha256").update([source, type, options].join("\n")).digest("hex").slice(0, 16);
  return [
    block("/etc/fstab", name, `${escaped(source)} ${escaped(path)} ${type} ${options} 0 0\n`),
    {
      id: `mount ${path}`,
      want: { mounted: "yes", fstype: type, how },
      look: sh`look_mount ${path} ${source} ${how}`,
      make: sh`need_dir ${path}
if mountpoint -q ${path}; then umount -- ${path}; fi
mount -t ${type} -o ${options} -- ${source} ${path}
printf %s ${how} >how`,
      undo: sh`[ "$(was mounted)" = yes ] || ! mountpoint -q ${path} || umount -- ${path}`,
    },
  ];
}

/** No swap, now and after every boot: fstab, systemd units and zram. Undo turns it on again. */
export const swapOff = (): Step => ({
  id: "swap",
  want: { swap: "off", fstab: "off", units: "off" },
  look: sh`look_swap`,
  save: sh`save_swap`,
  make: sh`set_swap_off`,
  undo: sh`undo_swap`,
});
