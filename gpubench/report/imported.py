"""Scaling of an import in words and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gpubench.importers.sizes import ImportedCurve
from gpubench.report import labels
from gpubench.report.scaling import RULES, SCHEMA, plain_figures, ratio_words, sizes_of


def imported_scaling_lines(curves: Sequence[ImportedCurve]) -> Iterator[str]:
    """A table per workload and version."""
    for curve, name in zip(curves, labels.cell_names([dict(one.key) for one in curves]), strict=True):
        yield f"{name}, {curve.variant} ({RULES[curve.rule]})"
        rows = [("workers", "seconds", "speed-up", "efficiency", "runs")]
        for one in sizes_of(curve.measured, curve.rule):
            seconds = labels.seconds(one.seconds.value)
            rows.append((str(one.at.units), seconds, *ratio_words(one), str(len(one.at.logs))))
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        for row in rows:
            yield "  " + "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()


def imported_scaling_json(name: str, curves: Sequence[ImportedCurve]) -> dict[str, Any]:
    """The same, complete; ``workers`` are all of the cluster."""
    return {
        "schema": SCHEMA,
        "campaign": name,
        "curves": [
            {
                **dict(curve.key),
                "variant": curve.variant,
                "rule": curve.rule,
                "sizes": [
                    {"workers": one.at.units, **plain_figures(one)} for one in sizes_of(curve.measured, curve.rule)
                ],
            }
            for curve in curves
        ],
        "scheduler_shares": [],
    }
