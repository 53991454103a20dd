"""Runs a command to its end and writes what it took, with all processes it started, as JSON.

usage: measure.py [--keep] RESULT COMMAND [ARGUMENT...]

What the command leaves running (ssh masters) is adopted, ended and counted too. With --keep it is left alone (a lab and what
serves it), and only what ended with the command counts as CPU time.
"""
import ctypes
import json
import os
import resource
import signal
import sys
import threading
import time

PR_SET_CHILD_SUBREAPER = 36
SAMPLE_SECONDS = 0.5


def children(pid):
    """Of all threads: Go programs fork from any of them."""
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                yield from map(int, file.read().split())
    except OSError:
        return


def descendants(pid):
    for child in children(pid):
        yield child
        yield from descendants(child)


def field(path, name):
    try:
        with open(path) as file:
            for line in file:
                if line.startswith(name):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0


class Memory(threading.Thread):
    """Proportional, so that what forked workers share counts once."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peak = 0
        self.processes = {}
        self.over = threading.Event()

    def sample(self):
        total = 0
        for pid in list(descendants(os.getpid())):
            total += field(f"/proc/{pid}/smaps_rollup", "Pss:")
            try:
                with open(f"/proc/{pid}/cmdline") as file:
                    command = file.read().replace("\0", " ")[:200]
            except OSError:
                continue
            high = field(f"/proc/{pid}/status", "VmHWM:")
            if high:
                self.processes[pid] = (command, high)
        self.peak = max(self.peak, total)

    def run(self):
        wait = SAMPLE_SECONDS / 4
        while not self.over.wait(wait):
            self.sample()
            wait = SAMPLE_SECONDS


def reap(seconds, pids=None):
    """Waits for all children for a while; whether none is left."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            time.sleep(0.01)
    return False


def main():
    keep = sys.argv[1] == "--keep"
    result, *command = sys.argv[2 if keep else 1 :]
    if not keep:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    memory = Memory()
    start = time.monotonic()
    pid = os.posix_spawnp(command[0], command, os.environ)
    memory.start()
    _, status = os.waitpid(pid, 0)
    seconds = time.monotonic() - start
    memory.over.set()
    memory.join()
    if not keep and not reap(0.3):
        for sign, patience in ((signal.SIGTERM, 3), (signal.SIGKILL, 3)):
            for child in list(descendants(os.getpid())):
                try:
                    os.kill(child, sign)
                except ProcessLookupError:
                    pass
            if reap(patience):
                break
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(result, "w") as file:
        json.dump(
            {
                "seconds": seconds,
                "cpuSeconds": usage.ru_utime + usage.ru_stime,
                "peakMB": max(memory.peak, usage.ru_maxrss) / 1024,
                "processes": [{"command": c, "peakMB": kb / 1024} for c, kb in memory.processes.values()],
            },
            file,
        )
    sys.exit(os.waitstatus_to_exitcode(status) & 255)


main()
