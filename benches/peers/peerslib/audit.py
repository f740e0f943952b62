"""What a server's log says of a crawl: which pages were had, how often, in what order and how far apart.

Pages are counted here alone, never by a crawler's own word.
"""
import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Request:
    """One request; times in seconds since 1970."""
    asked: float
    ended: float
    host: str
    path: str
    status: int
    method: str
    html: bool


@dataclass
class Audit:
    pages: int = 0                  # of those expected, had at least once
    twice: int = 0                  # answers with a page that had been given before
    missing: list = field(default_factory=list)
    extra: list = field(default_factory=list)
    requests: int = 0
    robots: int = 0                 # requests for robots.txt
    robots_late: int = 0            # requests of a host before its robots.txt had been answered
    disallowed: int = 0             # of what robots.txt forbids
    not_found: int = 0
    smallest_gap_s: float = None    # on one host, from one request to the next, robots.txt included
    smallest_pause_s: float = None  # on one host, from an answer to the next request
    first: float = None             # when the first request came
    last: float = None


def key(request):
    """The page: `/p/0` of the generated web is its `/` again."""
    return request.host, "/" if request.path == "/p/0" else request.path


def audit(requests, expected):
    """Judges requests; `expected` is the set of (host, path) that make up the site."""
    found = Audit()
    seen, strangers, robots_known, last = set(), set(), {}, {}
    for request in sorted(requests, key=lambda request: request.asked):
        found.requests += 1
        found.first = request.asked if found.first is None else found.first
        found.last = request.ended
        before = last.get(request.host)
        if before is not None:
            gap, pause = request.asked - before.asked, request.asked - before.ended
            found.smallest_gap_s = gap if found.smallest_gap_s is None else min(gap, found.smallest_gap_s)
            found.smallest_pause_s = pause if found.smallest_pause_s is None else min(pause, found.smallest_pause_s)
        last[request.host] = request
        if request.path == "/robots.txt":
            found.robots += 1
            robots_known.setdefault(request.host, request.ended)
            continue
        # Logs of whole milliseconds tell no order within one.
        if request.asked < robots_known.get(request.host, float("inf")) - 0.0015:
            found.robots_late += 1
        if request.path.startswith("/private/"):
            found.disallowed += 1
        elif request.status == 404:
            found.not_found += 1
        elif request.status == 200 and request.html and request.method == "GET":
            page = key(request)
            if page in seen or page in strangers:
                found.twice += 1
            elif page in expected:
                seen.add(page)
            else:
                strangers.add(page)
    found.pages = len(seen)
    found.missing = sorted(expected - seen)
    found.extra = sorted(strangers)
    return found


NGINX = re.compile(r"^(?P<ended>[\d.]+) (?P<took>[\d.]+) (?P<status>\d+) (?P<type>.*) (?P<method>[A-Z]+) (?P<path>\S+)$")


def of_nginx(lines):
    """The log_format of nginx.conf.in."""
    for line in lines:
        match = NGINX.match(line.rstrip("\n"))
        if match:
            ended = float(match["ended"])
            html = match["type"].startswith("text/html")
            yield Request(ended - float(match["took"]), ended, "a", match["path"], int(match["status"]), match["method"], html)


def of_web(lines):
    """The `/log` of rust/web."""
    for line in lines:
        asked, ended, host, path, status, method = line.split()
        html = path not in ("/robots.txt", "?")
        yield Request(int(asked) / 1e6, int(ended) / 1e6, host, path, int(status), method, html)
