#!/usr/bin/env python3
"""Makes site (a), real pages of one host, of Debian's documentation packages: site_a.py WORLD.

Each page stands in one of a few lists, which the first page links to, so that all can be reached. robots.txt forbids one page that is
linked. All files have a compressed copy beside them for the server to send.
"""
import gzip
import os
import shutil
import sys

PARTS = {
    "openjdk": ["/usr/share/doc/openjdk-17-jre-headless", "/usr/share/doc/openjdk-17-doc"],
    "python": ["/usr/share/doc/python3.11/html", "/usr/share/doc/python3/html"],
    "postgres": ["/usr/share/doc/postgresql-doc-15/html"],
}
KEPT = (".html", ".css", ".js", ".png", ".gif", ".svg", ".txt")
LIST = 500


def copy(source, target):
    """Copies what a site is made of; gives the paths of the pages."""
    for folder, _, names in os.walk(source, followlinks=True):
        for name in names:
            path = os.path.join(folder, name)
            if not name.endswith(KEPT) or not os.path.exists(path):
                continue
            to = os.path.join(target, os.path.relpath(path, source))
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copyfile(path, to)
            if name.endswith(".html"):
                yield to


def page(title, links):
    items = "\n".join(f'<li><a href="{link}">{link}</a>' for link in links)
    return f"<!doctype html><title>{title}</title><ul>\n{items}\n</ul>\n"


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def compress(root):
    for folder, _, names in os.walk(root):
        for name in names:
            if name.endswith((".html", ".css", ".js", ".svg", ".txt")) and name != "robots.txt":
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    packed = gzip.compress(file.read(), 6, mtime=0)
                with open(path + ".gz", "wb") as file:
                    file.write(packed)


def main():
    root = os.path.join(sys.argv[1], "www", "a")
    shutil.rmtree(root, ignore_errors=True)
    pages = []
    for name, sources in PARTS.items():
        source = next((source for source in sources if os.path.isdir(source)), None)
        if source is None:
            print(f"LEFT OUT of site (a): no {' nor '.join(sources)}", file=sys.stderr)
            continue
        pages += ["/" + os.path.relpath(path, root) for path in copy(source, os.path.join(root, name))]
    if not pages:
        sys.exit("error: no documentation at all; setup installs it with apt-get")
    pages.sort()
    lists = []
    for n in range(0, len(pages), LIST):
        lists.append(f"/list/{n // LIST:03}.html")
        write(root + lists[-1], page("list", pages[n:n + LIST]))
    write(root + "/index.html", page("site (a)", lists + ["/private/trap.html"]))
    write(root + "/private/trap.html", page("robots.txt says no", []))
    write(root + "/robots.txt", "User-agent: *\nDisallow: /private/\n")
    compress(root)
    print(f"site (a): {len(pages) + len(lists) + 1} pages")


if __name__ == "__main__":
    main()
