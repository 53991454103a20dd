import json
import os

from pyinfra import host
from pyinfra.operations import apt, files, server, systemd

ROLE = os.environ["BENCH_ROLE_FILES"]
OWN = f"{ROLE}/{host.name}"


def put(src, dest):
    return files.put(src=src, dest=dest, user="root", group="root", mode="644")


def text(path):
    with open(path) as file:
        return file.read().rstrip("\n")


ready = json.loads(text(f"{ROLE}/ready.json"))
name = text(f"{OWN}/hostname")
block = text(f"{ROLE}/hosts-block")

files.block(path="/etc/hosts", content=block, marker="# {mark} KubeXM Managed Block", begin="BEGIN", end="END")
put(f"{OWN}/hostname", "/etc/hostname")
server.shell(commands=[f'[ "$(cat /proc/sys/kernel/hostname)" = {name} ] || hostname {name}'])
apt.packages(packages=ready["packages"])
files.link(path="/etc/localtime", target=f"/usr/share/zoneinfo/{text(f'{ROLE}/timezone')}", force=True, force_backup=False)
put(f"{ROLE}/timezone", "/etc/timezone")
put(f"{ROLE}/modules", "/etc/modules-load.d/kubexm.conf")
server.shell(commands=[f"[ ! -e /proc/modules ] || modprobe -a {' '.join(ready['modules'])}"])
put(f"{ROLE}/sysctl", "/etc/sysctl.d/99-kubexm-cri.conf")
for key, value in ready["parameters"].items():
    server.sysctl(key=key, value=int(value))
clock = put(f"{OWN}/chrony.conf", "/etc/chrony/chrony.conf")
systemd.service(service="chrony.service", running=True, enabled=True)
if clock.will_change:
    systemd.service(service="chrony.service", restarted=True)
    server.shell(
        commands=[f"timeout 60 sh -c \"until {ready['inStep']}; do sleep 0.2; done\""]
    )
