"""``--cpu N``: the N files whose tests used most CPU seconds, of their processes and of all that these waited for.

What daemons do for a test (a container engine, slurmd) is counted with the test whose fixture ends them, or not at all.
"""

from __future__ import annotations

import collections
import resource
from collections.abc import Iterator
from typing import Any

import pytest

_seen = 0.0


def used() -> float:
    """CPU seconds of this process and of its descendants that have ended and were waited for."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in both)


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--cpu N``."""
    parser.addoption("--cpu", type=int, default=0, metavar="N", help="print the N files with most CPU seconds")


def pytest_collection_finish() -> None:
    """What imports and collection used belongs to no test."""
    global _seen  # noqa: PLW0603 - a process runs its tests one after the other
    _seen = used()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """Note at each report (set-up, call, teardown) what was used since the last one; xdist carries it along."""
    global _seen
    report: Any = yield
    now = used()
    report.cpu_s, _seen = now - _seen, now
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the files, most first, and the sum of all."""
    count = terminalreporter.config.getoption("--cpu")
    if not count:
        return
    by_file: collections.Counter[str] = collections.Counter()
    tests: dict[str, set[str]] = {}
    for reports in terminalreporter.stats.values():
        for one in reports:
            if hasattr(one, "cpu_s"):
                file = one.nodeid.partition("::")[0]
                by_file[file] += one.cpu_s
                tests.setdefault(file, set()).add(one.nodeid)
    terminalreporter.section(f"CPU seconds: {by_file.total():.0f}, of {len(by_file)} files")
    for file, seconds in by_file.most_common(count):
        terminalreporter.write_line(f"{seconds:8.1f} {file} ({len(tests[file])} tests)")
