"""The machine: what it is, whether it is quiet, what else it did."""
import os
import platform
import subprocess
import time

TICKS = os.sysconf("SC_CLK_TCK")


def busy_s():
    """CPU time of all processors that was not idle, since boot: user, nice, system, interrupts."""
    with open("/proc/stat") as file:
        fields = [int(n) for n in file.readline().split()[1:]]
    return sum(fields[i] for i in (0, 1, 2, 5, 6)) / TICKS


def wait_for_quiet(share, patience_s=120):
    """Waits until all processors together are busy for less than this share of one for a second. Tells whether it came to that."""
    until = time.monotonic() + patience_s
    while True:
        before = busy_s()
        time.sleep(1)
        if busy_s() - before < share:
            return True
        if time.monotonic() > until:
            return False


def output(*command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=30)
        return done.stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def file_system(path):
    return output("stat", "-f", "-c", "%T", str(path))


def describe(folder):
    """One line: what the runs were made on."""
    with open("/proc/cpuinfo") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    with open("/proc/meminfo") as file:
        memory = int(file.readline().split()[1]) / 1048576
    disk = output("findmnt", "-n", "-o", "SOURCE,FSTYPE", "-T", str(folder))
    return (f"{os.cpu_count()} cores ({models[0] if models else platform.machine()}), {memory:.0f} GiB, "
            f"{' '.join(disk.split())}, Linux {platform.release()}")


def versions(programs):
    """The crawlers' versions, in their own words."""
    asked = {
        "pgcrawl": [programs["pgcrawl"], "--version"],
        "wget2": ["wget2", "--version"],
        "wget": ["wget", "--version"],
        "httrack": ["httrack", "--version"],
        "scrapy": [programs["scrapy"], "-c", "import scrapy; print('Scrapy', scrapy.__version__)"],
    }
    found = {peer: output(*command).split("\n")[0] for peer, command in asked.items()}
    found["spider"] = "spider 2.53.9"
    return found
