"""Everything that a report is made from, as values.

Among them what was measured of the gate on this site, in one sentence, and both sides of a comparison in seconds.

Campaigns of thousands of runs: stretches of consecutive blocks instead of single ones, so that a page stays a page.

Nothing of what went wrong is pooled, and no verdict comes from here: those are of all blocks, each by itself.
"""

import dataclasses
import datetime as dt
import functools
import itertools
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gpubench.merge.environment import Changes
from gpubench.merge.family import Cell, family
from gpubench.merge.links import LinkTable
from gpubench.model.plan import Plan
from gpubench.stats.proportions import rate
from gpubench.stats.runs import ComparisonInput
from gpubench.stats.settings import Summary, VerdictSettings
from gpubench.stats.verdict import Verdict
from gpubench.store.accounting import RunOutcome
from gpubench.store.calibrations import Calibration

ABSENT = "False alarms: not calibrated on this site (gpubench calibrate measures how often the gate raises one here)"


def calibration_sentence(calibrations: Mapping[str, Calibration]) -> str:
    """How often the gate raised a false alarm, and found a known effect, each with where and when that was measured."""
    plain = calibrations.get("")
    alarms = ABSENT
    if plain is not None:
        alarms = (
            f"False alarms: {_rate(plain.alarms, plain.campaigns)} of a version against itself raised one, "
            f"{plain.equivalent} {'was' if plain.equivalent == 1 else 'were'} equivalent ({_circumstances(plain)})"
        )
    slowed = [calibrations[slow] for slow in sorted(calibrations) if slow]
    return "; ".join([alarms, *map(slowed_words, slowed)]) + "."


def slowed_words(one: Calibration) -> str:
    """How often a slowed candidate was found."""
    return (
        f"a candidate slowed by {one.slow.replace('%', ' %')} was found in {_rate(one.regressions, one.campaigns)} "
        f"({_circumstances(one)})"
    )


def _circumstances(one: Calibration) -> str:
    hosts = f"on {' and '.join(one.hosts)}" if 0 < len(one.hosts) <= 2 else ""
    load = "" if one.load is None else f"mean load {one.load:.1f}"
    words = [
        f"suite {one.suite}",
        f"{one.blocks} block{'s'[: one.blocks != 1]}",
        hosts,
        load,
        one.measured_at[:10],
        f"gpubench {one.gpubench}",
    ]
    return ", ".join(word for word in words if word)


def _rate(count: int, total: int) -> str:
    found = rate(count, total)
    return (
        f"{count} of {total} campaign{'' if total == 1 else 's'} ({100 * found.value:.3g} %, 95 % interval "
        f"{100 * found.low:.2g} to {100 * found.high:.3g} %)"
    )


Seconds = tuple[float, float] | None
"""Baseline and candidate; None where no block has both."""

_NUMBER: Mapping[Summary, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "geomean": statistics.geometric_mean,
    "median": statistics.median,
}


def seconds(comparisons: Sequence[ComparisonInput], verdicts: Sequence[Verdict], summary: Summary) -> list[Seconds]:
    """Of every verdict: baseline and candidate, in seconds.

    Each is the geometric mean over the blocks that the verdict used of its runs' numbers under the chosen summary, so
    that the second is the first times one plus the effect.
    """
    cells: dict[frozenset[tuple[str, object]], dict[str, dict[int, Sequence[float]]]] = {}
    for one in comparisons:
        sides = cells.setdefault(frozenset(one.key.items()), {})
        for run in one.runs:
            if run.wall_s:
                sides.setdefault(run.variant, {})[run.block] = run.wall_s
    return [_pair(one, cells.get(frozenset(one.key.items()), {}), summary) for one in verdicts]


def _pair(one: Verdict, sides: Mapping[str, Mapping[int, Sequence[float]]], summary: Summary) -> Seconds:
    before, after = sides.get(one.baseline, {}), sides.get(one.candidate, {})
    # The blocks that count are the first ones: a look that decided the comparison leaves out what came later.
    blocks = sorted(before.keys() & after.keys())[: one.blocks]
    if not blocks:
        return None
    return _mean([before[block] for block in blocks], summary), _mean([after[block] for block in blocks], summary)


def _mean(runs: Sequence[Sequence[float]], summary: Summary) -> float:
    return statistics.geometric_mean([_NUMBER[summary](samples) for samples in runs])


@dataclasses.dataclass(frozen=True)
class ReportInputs:
    """What the front end has read and computed.

    ``outcomes`` and ``cells`` are those of the accounting and of ``merge.cells``, in planned order. ``verdicts`` were
    made with ``settings``. ``links`` are those that the runs recorded. ``provenance`` maps a run directory's name to
    what stands in its ``provenance.json`` (keys may be missing), ``manifests`` a manifest's hash to the manifest.
    ``changes`` are what differed within blocks, for each verdict. ``warnings`` are lines for the reader: of the merge,
    of the accounting. ``calibration`` is a sentence about the gate on this site. ``target`` is what a user types for
    the campaign: its directory, or its name where only a pack is here.
    """

    plan: Plan
    outcomes: Sequence[RunOutcome]
    cells: Sequence[Cell]
    verdicts: Sequence[Verdict]
    settings: VerdictSettings
    links: Sequence[LinkTable]
    provenance: Mapping[str, Mapping[str, Any]]
    changes: Changes
    manifests: Mapping[str, Any]
    warnings: Sequence[str]
    generated_at: dt.datetime
    calibration: str = calibration_sentence({})
    target: str = ""

    @functools.cached_property
    def seconds(self) -> list[Seconds]:
        """Both sides of every verdict."""
        return seconds(family(self.plan, self.cells), self.verdicts, self.settings.summary)


MOST_RUNS = 800
"""A run takes some 2 KB of a page of at most 3 MB."""
_STRETCHES = 100


def needed(inputs: ReportInputs) -> bool:
    """Whether the campaign has too many runs to list each."""
    return len(inputs.outcomes) > MOST_RUNS


def sentence(inputs: ReportInputs) -> str:
    """What the reader has to know of it; empty where every run is listed."""
    if not needed(inputs):
        return ""
    return (
        f"{len(inputs.outcomes):,} runs are too many to list each: charts and tables show means over stretches of "
        "consecutive blocks, and by itself whatever isn't ok. "
        "Every run stands in runs/, every sample in results.parquet."
    )


def stretches(cells: Sequence[Cell], variants: Sequence[str]) -> Iterator[tuple[str, dict[str, list[Cell]]]]:
    """At most a hundred stretches of blocks in the order of ``cells``: their name, and the cells of each variant."""
    by_block: dict[int, list[Cell]] = {}
    for cell in cells:
        by_block.setdefault(cell.outcome.block.block, []).append(cell)
    blocks = list(by_block)
    width = -(-len(blocks) // _STRETCHES)
    for at in range(0, len(blocks), width):
        part = blocks[at : at + width]
        of_variant: dict[str, list[Cell]] = {label: [] for label in variants}
        for cell in itertools.chain.from_iterable(by_block[block] for block in part):
            of_variant[cell.outcome.run.variant].append(cell)
        yield _name(part), of_variant


def mean(cells: Sequence[Cell]) -> float | None:
    """Mean of the means of those runs that count, in seconds; None where none does."""
    found = [statistics.fmean(cell.wall_s) for cell in cells if cell.status == "ok"]
    return statistics.fmean(found) if found else None


def collapsed(blocks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the matrix of runs: those in which everything went as planned as one, up to the next that didn't."""
    rows: list[dict[str, Any]] = []
    for plain, group in itertools.groupby(blocks, key=_went_as_planned):
        found = list(group)
        if not plain or len(found) == 1:
            rows.extend(dict(row) for row in found)
            continue
        entry = {**found[0]["runs"][0], "place": "", "record": "", "samples": "", "provenance": "", "logs": ""}
        runs = [{**entry, "reasons": [f"{len(found)} runs"]} for _ in found[0]["runs"]]
        rows.append({"block": _name([row["block"] for row in found]), "replaces": None, "runs": runs})
    return rows


def thinned(rows: Sequence[Any]) -> Sequence[Any]:
    """At most ``MOST_RUNS`` of them, evenly over all."""
    return rows[:: -(-len(rows) // MOST_RUNS) or 1]


def _went_as_planned(row: Mapping[str, Any]) -> bool:
    return row["replaces"] is None and all(
        run and run["status"] == "ok" and run["attempt"] == 1 and not run["reasons"] and not run["partly"]
        for run in row["runs"]
    )


def _name(blocks: Sequence[int]) -> str:
    return str(blocks[0]) if len(blocks) == 1 else f"{min(blocks)}–{max(blocks)}"
