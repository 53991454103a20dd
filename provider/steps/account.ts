import { sh } from "../shell";
import type { Step } from "../step";
import { checkedName, checkedPath } from "./checked";

/** A system group. */
export const group = (name: string): Step => ({
  id: `group ${checkedName(name)}`,
  want: { group: "present" },
  look: sh`look_group ${name}`,
  make: sh`groupadd --system ${name}`,
  undo: sh`undo_group ${name}`,
});

export interface UserOptions {
  group?: string;
  home?: string;
  shell?: string;
}

/** A system user without a password. */
export function user(
  name: string,
  { group: primary = name, home = "/nonexistent", shell = "/usr/sbin/nologin" }: UserOptions = {},
): Step[] {
  checkedPath(home);
  checkedPath(shell);
  return [
    group(primary),
    {
      id: `user ${checkedName(name)}`,
      want: { user: "present", home, shell, group: primary },
      look: sh`look_user ${name}`,
      make: sh`if getent passwd ${name} >/dev/null; then usermod -g ${primary} -d ${home} -s ${shell} ${name}
else useradd --system --no-create-home -g ${primary} -d ${home} -s ${shell} ${name}; fi`,
      undo: sh`undo_user ${name}`,
    },
  ];
}
