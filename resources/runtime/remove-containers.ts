import { sh } from "../../provider/shell";
import type { Step } from "../../provider/step";
import { criSocket, crictl, ctr } from "./paths";

const socket = criSocket.replace("unix://", "");

/** Does nothing now; its undo ends what still runs, before containerd and its data go. */
export const removeContainers = (dataDir: string): Step => ({
  id: "containers",
  want: { recorded: "yes" },
  look: sh`if [ -d "$entry" ]; then kv recorded yes; else kv recorded no; fi`,
  make: sh`:`,
  undo: sh`if systemctl is-active -q containerd; then
  ${crictl} -t 60s rmp -f -a >/dev/null 2>&1 || :
  for space in $(${ctr} namespaces ls -q); do
    for task in $(${ctr} -n "$space" tasks ls -q); do ${ctr} -n "$space" tasks rm -f "$task" >/dev/null 2>&1 || :; done
  done
fi
systemctl stop containerd
for process in /proc/[0-9]*; do
  read -r name <"$process/comm" 2>/dev/null || continue
  case $name in containerd-shim*) ;; *) continue ;; esac
  # Another containerd, of a Docker from snap or in a container of another's, has its own.
  tr '\0' ' ' <"$process/cmdline" 2>/dev/null | grep -qF -e ${` -address ${socket} `} || continue
  shim=$(basename "$process")
  # What it looked after would live on without it: each is the first process of its container, with which the others go.
  for child in $(sed -n "s/^\([0-9]*\) (.*) [A-Z] $shim .*/\1/p" /proc/[0-9]*/stat 2>/dev/null); do kill -9 "$child" 2>/dev/null || :; done
  kill -9 "$shim" 2>/dev/null || :
done
unmount_below /run/containerd
rm -rf --one-file-system /run/containerd
unmount_below ${dataDir}`,
});
