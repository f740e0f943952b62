"""The two sites, as servers that are started, asked for their logs, and stopped. All on loopback."""
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

from . import audit

HERE = Path(__file__).resolve().parent.parent


def cpu_s(pids):
    """User and system time of live processes, and of children they have waited for."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat") as file:
                total += sum(int(n) for n in file.read().rsplit(")", 1)[1].split()[11:15])
        except OSError:
            pass
    return total / os.sysconf("SC_CLK_TCK")


def free_of(port):
    """Complains where somebody else listens, whom we would measure instead."""
    import socket
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise SystemExit(f"error: port {port} is not free ({error}); --port names another one")


def wait_for(url, process):
    for _ in range(200):
        if process.poll() is not None:
            raise SystemExit(f"error: the server of {url} ended with {process.returncode}")
        try:
            return urllib.request.urlopen(url, timeout=5).read()
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"error: nobody answers at {url}")


class SiteA:
    """Real pages, one host, nginx."""
    name = "a"

    def __init__(self, world, port):
        self.world, self.port = Path(world), port
        self.seed = f"http://127.0.0.1:{port}/"
        root = self.world / "www/a"
        if not (root / "index.html").exists():
            raise SystemExit(f"error: {root} is not there; run setup first")
        paths = {"/" + str(path.relative_to(root)) for path in root.rglob("*.html")}
        paths -= {path for path in paths if path.startswith("/private/")}
        self.expected = {("a", "/" if path == "/index.html" else path) for path in paths}

    def __enter__(self):
        free_of(self.port)
        # A folder of our own: the world may be shared.
        self.own = self.world / f"nginx-{self.port}"
        shutil.rmtree(self.own, ignore_errors=True)
        (self.own / "logs/tmp").mkdir(parents=True)
        (self.own / "www").symlink_to(self.world / "www")
        user = "user root;" if os.getuid() == 0 else ""
        text = (HERE / "nginx.conf.in").read_text()
        text = text.replace("@WORLD@", str(self.own)).replace("@PORT@", str(self.port)).replace("@USER@", user)
        (self.own / "nginx.conf").write_text(text)
        nginx = shutil.which("nginx") or "/usr/sbin/nginx"
        self.process = subprocess.Popen([nginx, "-c", self.own / "nginx.conf", "-g", "daemon off;"], stderr=subprocess.DEVNULL)
        wait_for(self.seed + "robots.txt", self.process)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(30)
        shutil.rmtree(self.own, ignore_errors=True)

    def pids(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            return [self.process.pid, *map(int, file.read().split())]

    def _rotate(self):
        log, old = self.own / "logs/a.log", self.own / "logs/a.log.old"
        log.rename(old)
        self.process.send_signal(signal.SIGUSR1)
        # The workers write what they hold when they hear of it, or after a second.
        time.sleep(1.3)
        return old

    def reset(self):
        self._rotate()

    def requests(self):
        with open(self._rotate(), errors="replace") as file:
            return list(audit.of_nginx(file))


class SiteB:
    """Generated pages, many hosts, rust/web."""
    name = "b"

    def __init__(self, program, port, hosts, pages, latency_ms=0, crawl_delay_s=0, links=50, cross=5):
        self.port, self.control = port, port + 1
        self.hosts, self.pages = hosts, pages
        numbers = [hosts, pages, links, cross, latency_ms, crawl_delay_s, port, port + 1, 7]
        self.command = [program, *map(str, numbers)]
        self.seed = f"http://h0001.site.test:{port}/"
        self.expected = {(f"h{host:04}", f"/p/{page}" if page else "/") for host in range(1, hosts + 1) for page in range(pages)}

    def __enter__(self):
        free_of(self.port)
        free_of(self.control)
        if not os.access(self.command[0], os.X_OK):
            raise SystemExit(f"error: {self.command[0]} is not there; run setup first")
        self.process = subprocess.Popen(self.command)
        wait_for(f"http://127.0.0.1:{self.control}/reset", self.process)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def pids(self):
        return [self.process.pid]

    def reset(self):
        urllib.request.urlopen(f"http://127.0.0.1:{self.control}/reset", timeout=30).read()

    def requests(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.control}/log", timeout=300) as answer:
            return list(audit.of_web(line.decode() for line in answer))
