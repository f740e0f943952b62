"""From runs, one dictionary each, to a Markdown table."""
from statistics import median

HEAD = ["work", "peer", "n", "pages/s (min–max)", "to spider", "to wget2", "CPU ms/page", "peak RSS MiB", "first request s",
        "had / missing / extra / twice", "smallest gap s", "robots", "dedupes", "durable"]


def groups(runs):
    """(work, peer) → its runs, in the order in which they were first made."""
    found = {}
    for run in runs:
        found.setdefault((run["work"], run["peer"]), []).append(run)
    return found


def robots_word(runs):
    if any(run["disallowed"] for run in runs):
        return f"**no**: {max(run['disallowed'] for run in runs)} forbidden"
    if any(run["robots"] == 0 for run in runs):
        return "never asked for"
    late = max(run["robots_late"] for run in runs)
    return f"asked {late} times too early" if late else "yes"


def span(values, digits=0):
    middle = f"{median(values):,.{digits}f}"
    if len(values) == 1:
        return middle
    return f"{middle} ({min(values):,.{digits}f}–{max(values):,.{digits}f})"


def row(work, peer, runs, rates):
    rate = median(run["pages_s"] for run in runs)

    def ratio(other):
        return f"{rate / rates[other]:.2f}" if rates.get(other) else "–"

    worst = max(runs, key=lambda run: run["missing"] + run["extra"])
    gaps = [run["smallest_gap_s"] for run in runs if run["smallest_gap_s"] is not None]
    twice = max(run["twice"] for run in runs)
    marks = ""
    if any(run["contaminated"] for run in runs):
        marks += " †"
    if any(run["complaints"] for run in runs):
        marks += " ‡"
    return [
        work, peer + marks, str(len(runs)), span([run["pages_s"] for run in runs]), ratio("spider"), ratio("wget2"),
        f"{median(run['cpu_ms_page'] for run in runs):.2f}", f"{median(run['rss_peak_mib'] for run in runs):.0f}",
        first_request(runs),
        f"{worst['pages']:,} / {worst['missing']} / {worst['extra']} / {twice}",
        f"{min(gaps):.4f}" if gaps else "–", robots_word(runs), "yes" if twice == 0 else f"but {twice}", runs[0]["durable"],
    ]


def first_request(runs):
    """Of a new crawl, and of one that goes on, where that was measured."""
    first = f"{median(run['first_request_s'] for run in runs):.2f}"
    again = [run["restart_s"] for run in runs if run["restart_s"] is not None]
    return f"{first}, again {median(again):.2f}" if again else first


def table(runs):
    """The table, and below it what its marks mean where there are some."""
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    found = groups(run for run in runs if run.get("pages"))
    for (work, peer), some in found.items():
        # No ratio to whoever did less than the work.
        rates = {p: median(run["pages_s"] for run in other) for (w, p), other in found.items()
                 if w == work and not any(run["missing"] for run in other)}
        lines.append("| " + " | ".join(row(work, peer, some, rates)) + " |")
    text = "\n".join(lines) + "\n"
    if " † " in text:
        text += "\n† something else took CPU beside a run: do not trust it.\n"
    if " ‡ " in text:
        text += "\n‡ with complaints, so not to be compared:\n\n"
        for run in runs:
            for complaint in run["complaints"]:
                text += f"- {run['work']}, {run['peer']}, round {run['round']}: {complaint}\n"
    idle = [run for run in runs if not run.get("pages")]
    for run in idle:
        text += f"\n{run['work']}, {run['peer']}, round {run['round']}: no page was had.\n"
    return text
