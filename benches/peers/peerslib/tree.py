#!/usr/bin/env python3
"""Runs a command and counts what it and all that comes of it cost: tree.py TIMEOUT_S OUTPUT -- COMMAND…

This process becomes the "subreaper" of what it starts (prctl(2)): whoever loses his parent below it becomes its child, daemons and
those of other users too, and so is waited for here. The kernel adds the CPU of a process to its parent's account when it is waited
for, so the account of our children, once there are none left, is the whole tree's: also of a Postgres whose postmaster outlived the
program that started it, and of the backends that the postmaster waited for. Nothing is sampled. The one thing that escapes is a
process whose parent ignores SIGCHLD; Postgres and the crawlers here do not.

Prints one JSON object. Linux only.
"""
import ctypes
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
# What stays behind when the command has ended (a server that shuts down) has so long.
GRACE_S = 60


def prctl(option, value):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option})")


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(pid) for pid in file.read().split()]


def kill_all():
    """Ends our children, and then theirs, who become ours."""
    for pid in children():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def resident_mib(pid):
    try:
        with open(f"/proc/{pid}/status") as file:
            for line in file:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) / 1024
    except OSError:
        pass
    return None


def wake_by_children():
    """A socket that becomes readable when a child ends, so that we need not look again and again beside what we measure."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return ours, theirs


def measure(command, timeout_s, output):
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    # Whoever asked for this is gone, or wants no more: then nothing of it shall stay.
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    woken, kept = wake_by_children()
    began_wall, began = time.time(), time.monotonic()
    main = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)
    ended = None
    code = peak = None
    timed_out = False
    resident = []
    next_look = began + 0.5
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            break
        now = time.monotonic()
        if pid == main.pid:
            ended, code = now, os.waitstatus_to_exitcode(status)
            # The kernel's own high-water mark, of the program and of the children it has waited for: of the largest one.
            peak = usage.ru_maxrss / 1024
        elif pid == 0:
            if stopped or now - began > timeout_s or (ended and now - ended > GRACE_S):
                timed_out = timed_out or ended is None
                kill_all()
            if ended is None and now >= next_look:
                resident.append(resident_mib(main.pid) or 0)
                next_look += 0.5
            if select.select([woken], [], [], 0.25)[0]:
                woken.recv(4096)
    usage, own = resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF)
    kept.close()
    middle = resident[len(resident) // 2] if resident else None
    return {
        "exit_code": code,
        "timed_out": timed_out,
        "began": began_wall,
        "wall_s": ended - began,
        "wall_with_shutdown_s": time.monotonic() - began,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "user_s": usage.ru_utime,
        "sys_s": usage.ru_stime,
        "helper_cpu_s": own.ru_utime + own.ru_stime,
        "rss_peak_mib": peak,
        "rss_half_way_mib": middle,
    }


def main():
    timeout_s, output = float(sys.argv[1]), sys.argv[2]
    command = sys.argv[sys.argv.index("--") + 1:]
    with open(output, "w") as file:
        print(json.dumps(measure(command, timeout_s, file)))


if __name__ == "__main__":
    main()
