"""What a history leaves out is said."""

from __future__ import annotations

from test_imports import results, rows

from gpubench.results.history import history


def test_runs_without_a_version_or_a_date_are_counted() -> None:
    unknown = [*rows("", dates=3), *rows("old", dates=2, date=None)]
    assert history(results(*rows("old"), *unknown)).about.endswith("5 runs without a version or a date left out")
    assert "left out" not in history(results(*rows("old"))).about
