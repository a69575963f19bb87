"""What results add to a history: figures with a version and a date, and a line about them. Pure."""

import dataclasses
from collections.abc import Sequence

from gpubench.model.text import counted
from gpubench.results.figures import Figure, figures
from gpubench.results.imports import UNKNOWN
from gpubench.results.results import Results


@dataclasses.dataclass(frozen=True)
class ResultHistory:
    """What a campaign or an import adds to a history."""

    kind: str
    name: str
    about: str
    figures: Sequence[Figure] = ()


def history(results: Results) -> ResultHistory:
    """What the results add to a history."""
    observed, about = figures(results), results.about
    if results.plan is None:
        dates = sorted({figure.date for figure in observed})
        span = f"{counted(len(dates), 'date')}, {dates[0]} to {dates[-1]}" if dates else "no dates"
        versions = ", ".join(sorted({figure.variant for figure in observed}))
        about = f"{about}, {span}, versions {versions}"
        left_out = sum(run.variant == UNKNOWN or run.date is None for run in results.runs)
        about += f"; {counted(left_out, 'run')} without a version or a date left out" if left_out else ""
    return ResultHistory(results.kind, results.name, about, observed)
