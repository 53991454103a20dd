import os

from pyinfra.operations import apt, files, server, systemd

ROLE = os.environ["BENCH_ROLE_FILES"]


def put(name, dest, mode):
    return files.put(src=f"{ROLE}/{name}", dest=dest, user="root", group="root", mode=mode)


with open(f"{ROLE}/hosts-block") as file:
    block = file.read().rstrip("\n")

apt.packages(packages=["sudo"])
files.block(path="/etc/hosts", content=block, marker="# {mark} KubeXM Managed Block", begin="BEGIN", end="END")
put("modules", "/etc/modules-load.d/kubexm.conf", "644")
put("sysctl", "/etc/sysctl.d/99-kubexm-cri.conf", "644")
server.sysctl(key="net.ipv4.tcp_keepalive_time", value=600)
files.directory(path="/etc/bench-agent", user="root", group="root", mode="755")
put("config", "/etc/bench-agent/agent.conf", "640")
put("defaults", "/etc/default/bench-agent", "644")
unit = put("unit", "/etc/systemd/system/bench-agent.service", "644")
put("program", "/usr/local/bin/bench-agent", "755")
if unit.will_change:
    systemd.daemon_reload()
systemd.service(service="bench-agent.service", running=True, enabled=True)
systemd.service(service="ssh.service", running=True, enabled=True)
