"""Which files of tests take the most time, of all processes together: what `--durations` prints by test."""

from __future__ import annotations

from collections import Counter

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print as many files as ``--durations`` names tests, the slowest first, and the sum of all."""
    most = config.getoption("durations")
    if not most or hasattr(config, "workerinput"):
        return
    seconds: Counter[str] = Counter()
    for kind in ("", "passed", "failed", "error", "rerun"):  # "" has what came before and after the tests
        for report in terminalreporter.getreports(kind):
            seconds[report.nodeid.partition("::")[0]] += getattr(report, "duration", 0.0)
    terminalreporter.section(f"time by file, {sum(seconds.values()):.0f} s in all")
    for file, of_file in seconds.most_common(most):
        terminalreporter.write_line(f"{of_file:7.1f}s {file}")
