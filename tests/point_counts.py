"""How many points (kills, failing calls, full disks) the tests of this session tried: a line at its end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

POINTS = "kill points"
"""A property that tests record: how many points they tried that struck."""
Count = Callable[[str, object], None]
"""pytest's fixture ``record_property``."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the sum."""
    reports = [one for kind in ("passed", "failed") for one in terminalreporter.getreports(kind)]
    counts = [[int(str(value)) for name, value in one.user_properties if name == POINTS] for one in reports]
    if tried := list(filter(None, counts)):
        terminalreporter.write_line(f"{POINTS}: {sum(map(sum, tried))} struck, in {len(tried)} tests")
