"""What is crawled, and how each crawler is told to do it."""
from dataclasses import dataclass, field

# Of what pages are made of, which no crawler here is asked to fetch.
NO_PAGES = "*.css,*.js,*.png,*.gif,*.svg,*.txt,*.ico"


@dataclass(frozen=True)
class Work:
    name: str
    site: str
    says: str
    timeout_s: int
    # Of site (b).
    web: dict = field(default_factory=dict)
    bodies: bool = False
    # Requests at once, and of pgcrawl's those on one host.
    concurrency: dict = field(default_factory=dict)
    per_host: int = 1


TWENTY_THOUSAND = {"hosts": 100, "pages": 200}
MANY = {"pgcrawl": 64, "wget2": 32, "wget": 1, "httrack": 16, "scrapy": 32, "spider": 100}

WORKS = {
    work.name: work
    for work in [
        Work("a", "a", "11,864 real pages of one host, nothing kept but rows", 120, per_host=16,
             concurrency={"pgcrawl": 16, "wget2": 16, "wget": 1, "httrack": 16, "scrapy": 16, "spider": 16}),
        Work("a-bodies", "a", "the same, and their text is kept", 120, bodies=True, per_host=16,
             concurrency={"pgcrawl": 16, "wget2": 16, "wget": 1, "httrack": 16, "scrapy": 16, "spider": 16}),
        Work("b", "b", "100 hosts of 200 pages of 20 KB", 120, TWENTY_THOUSAND, concurrency=MANY, per_host=4),
        Work("b-latency", "b", "the same, 100 ms an answer, 256 at once: at most 2,560 a second", 120, {**TWENTY_THOUSAND, "latency_ms": 100},
             concurrency={"pgcrawl": 256, "wget2": 256, "wget": 1, "httrack": 256, "scrapy": 256, "spider": 300}, per_host=8),
        Work("b-polite", "b", "5 hosts of 8 pages, Crawl-delay: 1", 90,
             {"hosts": 5, "pages": 8, "crawl_delay_s": 1, "links": 12, "cross": 2},
             concurrency={"pgcrawl": 16, "wget2": 16, "wget": 1, "httrack": 16, "scrapy": 16, "spider": 16}),
        Work("scale-20k", "b", "100 hosts of 200 pages", 120, TWENTY_THOUSAND, concurrency=MANY, per_host=4),
        Work("scale-200k", "b", "1,000 hosts of 200 pages", 400, {"hosts": 1000, "pages": 200},
             concurrency={**MANY, "spider": 1000}, per_host=4),
        Work("scale-1m", "b", "1,000 hosts of 1,000 pages", 1800, {"hosts": 1000, "pages": 1000},
             concurrency={**MANY, "spider": 1000}, per_host=4),
    ]
}

DURABLE = {
    "pgcrawl": "each page committed, fsync on",
    "wget2": "files, not synced",
    "wget": "files, not synced",
    "httrack": "files, not synced",
    "scrapy": "no",
    "spider": "no",
}


def pgcrawl(programs, work, site, folder):
    command = [programs["pgcrawl"], "crawl", site.seed, "--data-dir", f"{folder}/db", "-q", "--delay", "0s", "--sitemap", "skip",
               "--concurrency", str(work.concurrency["pgcrawl"]), "--per-host", str(work.per_host)]
    if site.name == "b":
        command += ["--scope", "site", "--contact", "bench@site.test", "--resolver", "system", "--allow-host", "*.site.test"]
    if work.bodies:
        command.append("--store-bodies")
    return command + programs["pgcrawl_flags"]


def wget2(programs, work, site, folder):
    span = ["-H", "-D", "site.test"] if site.name == "b" else []
    kept = [] if work.bodies else ["--delete-after"]
    return ["wget2", "-q", "-r", "--level=0", *span, f"--max-threads={work.concurrency['wget2']}", *kept, "--no-verify-save-failed",
            "-P", f"{folder}/files", "-R", NO_PAGES, site.seed]


def wget(programs, work, site, folder):
    span = ["-H", "-D", "site.test"] if site.name == "b" else []
    kept = [] if work.bodies else ["--delete-after"]
    return ["wget", "-q", "-r", "-l", "inf", *span, *kept, "--compression=auto", "-P", f"{folder}/files", "-R", NO_PAGES, site.seed]


def httrack(programs, work, site, folder):
    others = [f"+*.site.test:{site.port}/*"] if site.name == "b" else []
    at_once = work.concurrency["httrack"]
    return ["httrack", site.seed, "-O", f"{folder}/files", "-q", "-Q", "-I0", "-C0", "-r9999", "-s2", "-p1", "-%P0", f"-c{at_once}",
            "-%c100000", "-A10000000000", "--disable-security-limits", "-%v0", "-m50000000",
            *(f"-{pattern}" for pattern in NO_PAGES.split(",")), *others]


def spider(programs, work, site, folder):
    at_once = str(work.concurrency["spider"])
    if site.name == "a":
        return [programs["spider"], site.seed, at_once]
    # A Website a host is how its users crawl many; where a Crawl-delay is kept, one Website knows all five hosts.
    if "crawl_delay_s" in work.web:
        return [programs["spider"], site.seed, at_once, "subdomains"]
    return [programs["spider"], f"multi:{site.hosts}:{site.port}", at_once]


def scrapy(programs, work, site, folder):
    domain = "127.0.0.1" if site.name == "a" else "site.test"
    return [programs["scrapy"], programs["scrapy_peer"], site.seed, str(work.concurrency["scrapy"]), domain]


PEERS = {"pgcrawl": pgcrawl, "spider": spider, "wget2": wget2, "wget": wget, "httrack": httrack, "scrapy": scrapy}
