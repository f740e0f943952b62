#!/usr/bin/env python3
"""Tests of the measuring itself: python3 benches/peers/test_peers.py. They take a few seconds and need no root."""
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

from peerslib import audit, table, works  # noqa: E402

# Burns CPU until the process's own clock says so: a known amount, however busy the machine is.
BURN = "import time\nwhile time.process_time() < {}: pass\n"


def measured(program, timeout_s=60):
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, HERE / "peerslib/tree.py", str(timeout_s), f"{folder}/output", "--", sys.executable, "-c", program]
        return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)


def seconds_of(python):
    """What an interpreter takes that does nothing, of each that is started."""
    return measured(python)["cpu_s"]


class Tree(unittest.TestCase):
    def assert_cpu(self, program, burnt, interpreters):
        idle = seconds_of("pass")
        result = measured(program)
        self.assertEqual(result["exit_code"], 0)
        least, most = burnt - 0.03, burnt + interpreters * idle * 2 + 0.15
        self.assertTrue(least <= result["cpu_s"] <= most, f"{result['cpu_s']} is not within {least} to {most}")
        return result

    def test_a_process_that_does_all_itself_is_counted(self):
        self.assert_cpu(BURN.format(0.5), 0.5, 1)

    def test_children_that_are_waited_for_are_counted(self):
        child = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BURN.format(0.3)!r}])\n"
        grandchild = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])\n" + BURN.format(0.2)
        self.assert_cpu(grandchild, 0.5, 3)

    def test_a_daemon_that_outlives_its_starter_is_counted_with_its_children(self):
        # As pg_ctl starts a postmaster: another session, nobody's child, and children of its own that it waits for.
        worker = BURN.format(0.3)
        daemon = (f"import os, subprocess, sys, time\nos.setsid()\nif os.fork(): os._exit(0)\ntime.sleep(0.3)\n"
                  f"subprocess.run([sys.executable, '-c', {worker!r}])\n" + BURN.format(0.4))
        program = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {daemon!r}])\n"
        # The program has ended before its daemon began to burn.
        result = self.assert_cpu(program, 0.7, 3)
        self.assertLess(result["wall_s"], result["wall_with_shutdown_s"] - 0.5)

    @unittest.skipUnless(os.getuid() == 0, "only root can become somebody else")
    def test_a_daemon_of_another_user_is_counted(self):
        daemon = f"import os\nos.setsid()\nif os.fork(): os._exit(0)\nos.setgid(65534)\nos.setuid(65534)\n" + BURN.format(0.4)
        self.assert_cpu(f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {daemon!r}])\n", 0.4, 2)

    def test_what_takes_too_long_is_ended_with_all_that_came_of_it(self):
        mark = f"sleep 3{os.getpid()}"
        program = f"import subprocess\nsubprocess.Popen('setsid {mark}', shell=True)\nsubprocess.run('{mark}', shell=True)\n"
        result = measured(program, timeout_s=1)
        self.assertTrue(result["timed_out"])
        left = subprocess.run(["pgrep", "-f", f"^{mark}"], stdout=subprocess.PIPE, text=True).stdout
        self.assertEqual(left, "")

    def test_of_what_is_broken_off_nothing_stays(self):
        mark = f"sleep 4{os.getpid()}"
        program = f"import subprocess\nsubprocess.Popen('setsid {mark}', shell=True)\nprint('begun', flush=True)\nsubprocess.run('{mark}', shell=True)\n"
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder, "output")
            command = [sys.executable, HERE / "peerslib/tree.py", "60", output, "--", sys.executable, "-c", program]
            helper = subprocess.Popen(command, stdout=subprocess.PIPE)
            while not (output.exists() and output.read_text()):
                time.sleep(0.02)
            helper.terminate()
            self.assertTrue(json.loads(helper.communicate()[0])["timed_out"])
        left = subprocess.run(["pgrep", "-f", f"^{mark}"], stdout=subprocess.PIPE, text=True).stdout
        self.assertEqual(left, "")

    def test_the_peak_of_memory_is_that_of_the_program(self):
        result = measured("x = bytearray(200 << 20)\nimport time\ntime.sleep(0.1)\ndel x")
        self.assertTrue(200 < result["rss_peak_mib"] < 260, result)


def request(asked, path, host="h1", took=0.01, status=200, method="GET", html=True):
    return audit.Request(asked, asked + took, host, path, status, method, html and path != "/robots.txt")


class Audit(unittest.TestCase):
    def test_pages_are_counted_once_and_strangers_apart(self):
        expected = {("h1", "/"), ("h1", "/p/1"), ("h1", "/p/2")}
        found = audit.audit([
            request(1, "/robots.txt"), request(2, "/"), request(3, "/p/0"), request(4, "/p/1"), request(5, "/p/1", method="HEAD"),
            request(6, "/other"), request(7, "/gone", status=404), request(8, "/private/1"), request(9, "/style.css", html=False),
        ], expected)
        self.assertEqual((found.pages, found.twice, found.not_found, found.disallowed), (2, 1, 1, 1))
        self.assertEqual((found.missing, found.extra), ([("h1", "/p/2")], [("h1", "/other")]))

    def test_gaps_are_those_of_one_host_robots_included_whatever_the_order_of_the_log(self):
        found = audit.audit([
            request(3.5, "/p/1", took=0.4), request(1, "/robots.txt", took=0.5), request(2.25, "/"), request(2.3, "/", host="h2"),
        ], set())
        self.assertAlmostEqual(found.smallest_gap_s, 1.25)
        self.assertAlmostEqual(found.smallest_pause_s, 0.75)

    def test_a_request_before_the_answer_of_robots_txt_is_too_early(self):
        found = audit.audit([
            request(1, "/robots.txt", took=0.5), request(1.2, "/"), request(1.6, "/p/1"), request(5, "/", host="h2"),
        ], set())
        self.assertEqual(found.robots_late, 2)

    def test_the_logs_of_both_servers_are_read(self):
        [page] = audit.of_nginx(["1700000000.500 0.250 200 text/html; charset=utf-8 GET /a/b.html\n"])
        self.assertEqual((page.asked, page.path, page.status, page.html), (1700000000.25, "/a/b.html", 200, True))
        robots, page = audit.of_web(["1000000 1000500 h0002 /robots.txt 200 GET", "2000000 2000400 h0002 /p/7 200 GET"])
        self.assertEqual((robots.html, page.html, page.host, page.asked), (False, True, "h0002", 2.0))


def run(peer, pages_s, **others):
    return {
        "work": "a", "peer": peer, "round": 1, "pages": 100, "pages_s": pages_s, "cpu_ms_page": 0.25, "rss_peak_mib": 50, "first_request_s": 0.1, "restart_s": None,
        "missing": 0, "extra": 0, "twice": 0, "smallest_gap_s": 1.0, "disallowed": 0, "robots": 1, "robots_late": 0, "contaminated": False,
        "timed_out": False, "complaints": [], "durable": works.DURABLE[peer], **others,
    }


class Table(unittest.TestCase):
    def cells(self, text, peer):
        [line] = [line for line in text.splitlines() if line.startswith(f"| a | {peer}")]
        return [cell.strip() for cell in line.strip("|").split("|")]

    def test_medians_spans_and_ratios_of_the_same_work(self):
        runs = [run("pgcrawl", rate) for rate in (4000, 5000, 9000)] + [run("spider", 2500), run("wget2", 10000)]
        cells = self.cells(table.table(runs), "pgcrawl")
        self.assertEqual(cells[2:6], ["3", "5,000 (4,000–9,000)", "2.00", "0.50"])
        self.assertEqual(len(cells), len(table.HEAD))

    def test_a_ratio_to_nobody_or_to_half_a_crawl_is_a_dash(self):
        self.assertEqual(self.cells(table.table([run("pgcrawl", 1)]), "pgcrawl")[4:6], ["–", "–"])
        half = run("spider", 1, missing=50, complaints=["it ended without 50"])
        self.assertEqual(self.cells(table.table([run("pgcrawl", 1), half]), "pgcrawl")[4], "–")

    def test_contaminated_and_unsound_runs_are_marked_and_explained(self):
        text = table.table([run("pgcrawl", 1, contaminated=True), run("wget2", 1, complaints=["exit code 3"])])
        self.assertIn("| pgcrawl † |", text)
        self.assertIn("a, wget2, round 1: exit code 3", text)

    def test_the_first_request_of_a_crawl_that_goes_on_is_told_apart(self):
        text = table.table([run("pgcrawl", 1, restart_s=0.25), run("spider", 1)])
        self.assertEqual(self.cells(text, "pgcrawl")[8], "0.10, again 0.25")
        self.assertEqual(self.cells(text, "spider")[8], "0.10")

    def test_a_run_without_a_page_has_no_row(self):
        text = table.table([run("pgcrawl", 1), run("spider", 0, pages=0, first_request_s=math.nan)])
        self.assertIn("a, spider, round 1: no page was had", text)
        self.assertNotIn("| spider", text)

    def test_disobedience_is_named(self):
        text = table.table([run("httrack", 1, disallowed=3), run("wget2", 1, robots=0), run("spider", 1, robots_late=7)])
        self.assertIn("**no**: 3 forbidden", text)
        self.assertIn("never asked for", text)
        self.assertIn("asked 7 times too early", text)


if __name__ == "__main__":
    unittest.main()
