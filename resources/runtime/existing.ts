import { sh } from "../../provider/shell";
import { command } from "../../provider/steps";
import type { Step } from "../../provider/step";

const look = (ours: string) => sh`found=
for program in /usr/bin/containerd /usr/sbin/containerd /usr/local/bin/containerd /snap/bin/containerd; do
  [ -x "$program" ] || continue
  case $program in /usr/local/*) ! is_ours ${ours} || continue ;; esac
  found="$found $program"
done
[ -z "$found" ]`;

/** A containerd that somebody else set up runs their containers: it is not touched unless they say so. */
export const noOtherContainerd = ({ id }: Pick<Step, "id">): Step =>
  command("no other containerd", {
    doneWhen: look(id),
    run: sh`${look(id)} || {
say "containerd is there already:$found ($($found --version 2>/dev/null | head -n 1))"
say "set containerRuntime.containerd.existing to adopt (keep it) or replace, or remove it"
exit 1
}`,
  });
