"""A second try under CI for each test that fails: one that passes then is reported as flaky and turns nothing red.

Tests of the unit level, too: many of them start processes and send signals. A flaky test stands in
``tests/flaky.md`` until its cause is mended.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

ON_REAL_PARTS = ("integration", "system", "testbed")
KNOWN = Path(__file__).with_name("flaky.md")
REPORT = "PYTEST_FLAKY_REPORT"
"""Variable that names a file to which the lines are appended; ``.ci/run`` prints it at its end."""


def on_real_parts(item: pytest.Item) -> bool:
    """Whether a test starts a cluster, a server or a scheduler."""
    return any(item.get_closest_marker(name) for name in ON_REAL_PARTS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ask pytest-rerunfailures for the second try."""
    if os.environ.get("CI"):
        for item in items:
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name every test that failed once and passed then, with what it said when it failed."""
    if hasattr(terminalreporter.config, "workerinput"):
        return  # pytest-xdist's main process has the reports of all
    failed = {report.nodeid for kind in ("failed", "error") for report in terminalreporter.getreports(kind)}
    lines = [
        f"FLAKY: {_name(report.nodeid)}: {_cause(report)}; {_listed(_name(report.nodeid))}"
        for report in terminalreporter.getreports("rerun")
        if report.nodeid not in failed
    ]
    if not lines:
        return
    terminalreporter.section("flaky tests: passed at the second try", yellow=True)
    for line in lines:
        terminalreporter.write_line(line, yellow=True)
    if path := os.environ.get(REPORT):
        with Path(path).open("a", encoding="utf-8") as out:
            out.writelines(f"{line}\n" for line in lines)


def _name(nodeid: str) -> str:
    """The test without the group that pytest-xdist puts behind it."""
    return re.sub(r"@[\w ./-]+$", "", nodeid)


def _cause(report: pytest.TestReport) -> str:
    """When it failed (setup, call or teardown), and the first line of what it said."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr)
    return f"{report.when}: {text.strip().splitlines()[0]}" if text.strip() else report.when


def _listed(name: str) -> str:
    known = KNOWN.exists() and name in KNOWN.read_text(encoding="utf-8")
    return "known, see tests/flaky.md" if known else "add it to tests/flaky.md and find its cause"
