"""Two campaigns or imports side by side: verdicts, curves, and what the comparison can't take out."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence

from gpubench.history.sides import Pair, SideCell
from gpubench.importers.pairing import Key
from gpubench.report import labels
from gpubench.report.scaling import RULES, plain_figures, ratio_words, sizes_of
from gpubench.report.sections import Section, SectionPart, TextTable
from gpubench.stats.scaling import Rule, ScalingPoint, TimeAtSize
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.unpaired import JudgedUnpaired, judge_unpaired
from gpubench.stats.verdict import Verdict

SIDES = "gpubench/sides/1"
UNPAIRED = (
    "unpaired: no block is shared, so the days, the nodes and the scheduler of each side are part of every difference; "
    "what a verdict says holds of these two sides as they stood"
)


@dataclasses.dataclass(frozen=True)
class Side:
    """One of the two: ``letter`` A or B, the kind, name and variant of it, and its cells."""

    letter: str
    kind: str
    name: str
    variant: str
    cells: Sequence[SideCell]

    @property
    def label(self) -> str:
        """``A slurm-weak 1.17.0``."""
        return f"{self.letter} {self.name} {self.variant}"


@dataclasses.dataclass(frozen=True)
class SideBySide:
    """Everything that is shown; ``verdicts`` stand in the order of ``pairs``.

    ``notes`` are what a reader must know: what can't be taken out, what isn't recorded, what else differs.
    """

    first: Side
    second: Side
    pairs: Sequence[Pair]
    lone: Sequence[tuple[str, SideCell]]
    verdicts: Sequence[Verdict]
    notes: Sequence[str]
    settings: VerdictSettings


@dataclasses.dataclass(frozen=True)
class Curves:
    """One question over sizes on both sides: ``sizes`` by letter, verdicts by threads; some sizes are refused."""

    question: Key
    name: str
    rule: Rule
    sizes: dict[str, Sequence[TimeAtSize]]
    verdicts: dict[int, Verdict]
    refused: frozenset[int]


def judge_sides(first: Side, second: Side, pairs: Sequence[Pair], settings: VerdictSettings) -> list[Verdict]:
    """A verdict per pair. What is refused keeps its place in the family, and is inconclusive."""
    family = [((), ()) if one.refused else (one.first.blocks, one.second.blocks) for one in pairs]
    return [
        _verdict(first, second, pair, judged)
        for pair, judged in zip(pairs, judge_unpaired(family, settings), strict=True)
    ]


def _verdict(first: Side, second: Side, pair: Pair, judged: JudgedUnpaired) -> Verdict:
    flags = ["unpaired"]
    if pair.first.protocol != pair.second.protocol:
        flags.append("protocol")
    if pair.unknown:
        flags.append("layout-unknown")
    reason = pair.refused or judged.reason
    if not pair.refused and judged.reason.startswith("no data"):
        reason = f"no block: {judged.blocks[0]} and {judged.blocks[1]}; of an import, dates stand for blocks"
    return Verdict(
        key=dict(pair.first.question) | {"workers": pair.first.layout.workers or pair.first.units},
        baseline=first.label,
        candidate=second.label,
        effect=judged.effect,
        low=judged.low,
        high=judged.high,
        blocks=min(judged.blocks),
        verdict=judged.word,
        reason=reason,
        more_blocks=None,
        p=judged.p,
        p_holm=judged.p_holm,
        p_flip=None,
        p_family=None,
        samples=len(pair.first.logs) + len(pair.second.logs),
        median_effect=None,
        geomean_effect=None,
        beyond_margin=judged.beyond_margin,
        flags=tuple(flags),
        stragglers_baseline=0,
        stragglers_candidate=0,
        straggler_limit=None,
        one_job=False,
        low_adjusted=judged.low_adjusted,
        high_adjusted=judged.high_adjusted,
    )


def curves(shown: SideBySide) -> list[Curves]:
    """Every question that both sides have, over all sizes of either."""
    questions = list(dict.fromkeys(pair.first.question for pair in shown.pairs))
    names = labels.cell_names([dict(question) for question in questions])
    return [_curves(shown, question, name) for question, name in zip(questions, names, strict=True)]


def _curves(shown: SideBySide, question: Key, name: str) -> Curves:
    sizes: dict[str, Sequence[TimeAtSize]] = {}
    rule: Rule = "none"
    for side in (shown.first, shown.second):
        cells = [one for one in side.cells if one.question == question]
        rule = cells[0].rule
        # Where threads are laid out in several ways the runs of a size would be of two kinds: the first alone is drawn.
        by_units = {one.units: one for one in reversed(cells)}
        measured = [ScalingPoint(1, units, 1, one.logs) for units, one in sorted(by_units.items())]
        sizes[side.letter] = sizes_of(measured, rule)
    verdicts = {
        pair.first.units: verdict
        for pair, verdict in zip(shown.pairs, shown.verdicts, strict=True)
        if pair.first.question == question
    }
    refused = frozenset(pair.first.units for pair in shown.pairs if pair.first.question == question and pair.refused)
    return Curves(question, name, rule, sizes, verdicts, refused)


def size_rows(one: Curves) -> list[dict[str, str]]:
    """A row per size of either side, in words."""
    by_side = {letter: {size.at.units: size for size in sizes} for letter, sizes in one.sizes.items()}
    rows = []
    for units in sorted({units for sizes in by_side.values() for units in sizes} | set(one.verdicts)):
        row = {"units": str(units)}
        for letter, sizes in by_side.items():
            size = sizes.get(units)
            row[f"seconds_{letter}"] = labels.seconds(size.seconds.value) if size else "-"
            row[f"efficiency_{letter}"] = ratio_words(size)[1] if size else "-"
            row[f"runs_{letter}"] = str(len(size.at.logs)) if size else "-"
        verdict = one.verdicts.get(units)
        row["effect"] = f"{labels.effect(verdict)} {labels.interval(verdict)}".rstrip() if verdict else "-"
        row["effect"] = "refused" if units in one.refused else row["effect"]
        row["verdict"] = verdict.verdict if verdict else "-"
        row["mark"] = labels.MARKS[verdict.verdict] if verdict else ""
        row["reason"] = "; ".join([verdict.reason, *verdict.flags]) if verdict else "only one side has it"
        rows.append(row)
    return rows


_HEADINGS = {
    "units": "threads",
    "seconds_A": "A seconds",
    "efficiency_A": "A efficiency",
    "seconds_B": "B seconds",
    "efficiency_B": "B efficiency",
    "effect": "B against A [95 %]",
    "verdict": "verdict",
}


def sides_section(shown: SideBySide) -> Section:
    """A table per workload, both sides in it, then why; numbers are seconds, and ratios minus one."""
    parts = [SectionPart(lines=[f"{side.letter}: {side.kind} {side.name}, {side.variant}" for side in _both(shown)])]
    plain = []
    for one in curves(shown):
        rows = size_rows(one)
        table = TextTable(tuple(_HEADINGS.values()), [tuple(row[column] for column in _HEADINGS) for row in rows])
        why = [f"{row['units']}: {row['reason']}" for row in rows if row["verdict"] not in ("equivalent", "-")]
        parts += [SectionPart(f"{one.name} ({RULES[one.rule]})", table=table), SectionPart(lines=why, depth=1)]
        plain.append(
            {
                **dict(one.question),
                "params": json.loads(str(dict(one.question).get("params", "{}"))),
                "rule": one.rule,
                **{
                    letter: [{"threads": size.at.units, **plain_figures(size)} for size in sizes]
                    for letter, sizes in one.sizes.items()
                },
            }
        )
    lone = list(lone_lines(shown))
    data = {
        "schema": SIDES,
        "sides": {
            side.letter: {"kind": side.kind, "name": side.name, "variant": side.variant} for side in _both(shown)
        },
        "settings": dataclasses.asdict(shown.settings),
        "curves": plain,
        "cells": [
            {**dict(verdict.key), **{k: v for k, v in dataclasses.asdict(verdict).items() if k != "key"}}
            | {"blocks": [len(pair.first.blocks), len(pair.second.blocks)], "refused": bool(pair.refused)}
            | {"layout": [str(pair.first.layout), str(pair.second.layout)]}
            for pair, verdict in zip(shown.pairs, shown.verdicts, strict=True)
        ],
        "only": lone,
        "notes": list(shown.notes),
    }
    return Section([*parts, SectionPart(lines=lone)], data, shown.notes)


def _both(shown: SideBySide) -> tuple[Side, Side]:
    return shown.first, shown.second


def lone_lines(shown: SideBySide) -> Iterator[str]:
    """What only one side has, each question once with its sizes."""
    found: dict[tuple[str, Key], list[int]] = {}
    for letter, cell in shown.lone:
        found.setdefault((letter, cell.question), []).append(cell.units)
    names = labels.cell_names([dict(question) for _, question in found])
    for ((letter, _), units), name in zip(found.items(), names, strict=True):
        yield f"only {letter} has {name} at {', '.join(map(str, sorted(units)))} threads"
