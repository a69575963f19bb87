"""Two campaigns or imports side by side: verdicts, curves, and the effects that the comparison can't remove."""

import dataclasses
import functools
import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from gpubench.history.sides import Pair, SideCell
from gpubench.importers.pairing import Key
from gpubench.model.text import counted
from gpubench.report import labels
from gpubench.report.inputs import Seconds
from gpubench.report.scaling import RULES, plain_figures, ratio_words, sizes_of
from gpubench.report.sections import (
    Chart,
    ColumnStyle,
    Heading,
    Medium,
    RichText,
    Section,
    SectionPart,
    Spec,
    TextSpan,
    TextTable,
)
from gpubench.report.verdicts import verdict_mark
from gpubench.stats.scaling import Rule, ScalingPoint, TimeAtSize
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.unpaired import JudgedUnpaired, judge_unpaired
from gpubench.stats.verdict import Verdict

SIDES = "gpubench/sides/1"
UNPAIRED = (
    "unpaired: no block is shared, so the days, the nodes and the scheduler of each side are part of every difference; "
    "a verdict holds only for these two sides as they were measured"
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

    ``notes`` are effects that can't be removed, facts that aren't recorded, and other differences.
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


def judge_sides(matched: Sequence[tuple[Side, Side, Sequence[Pair]]], settings: VerdictSettings) -> list[list[Verdict]]:
    """A verdict per pair of each two sides, all one family. A refused pair stays in the family, and is inconclusive."""
    every = [pair for _, _, pairs in matched for pair in pairs]
    family = [((), ()) if one.refused else (one.first.blocks, one.second.blocks) for one in every]
    judged = iter(judge_unpaired(family, settings))
    return [[_verdict(first, second, pair, next(judged)) for pair in pairs] for first, second, pairs in matched]


def _verdict(first: Side, second: Side, pair: Pair, judged: JudgedUnpaired) -> Verdict:
    flags = ["unpaired"]
    if pair.first.protocol != pair.second.protocol:
        flags.append("protocol")
    if pair.unknown:
        flags.append("layout-unknown")
    reason = pair.refused or judged.reason
    if not pair.refused and judged.reason.startswith("no data"):
        reason = f"no block: {judged.blocks[0]} and {judged.blocks[1]}; in an import, dates are used as blocks"
    return Verdict(
        **{**dataclasses.asdict(judged), "blocks": min(judged.blocks), "reason": reason},
        key=dict(pair.first.question) | {"workers": pair.first.layout.workers or pair.first.units},
        baseline=first.label,
        candidate=second.label,
        samples=len(pair.first.logs) + len(pair.second.logs),
        flags=tuple(flags),
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


def _table(one: Curves) -> TextTable:
    """A row per size of either side."""
    by_side = {letter: {size.at.units: size for size in sizes} for letter, sizes in one.sizes.items()}
    rows = []
    for units in sorted({units for sizes in by_side.values() for units in sizes} | set(one.verdicts)):
        row: list[RichText] = [str(units)]
        for sizes in by_side.values():
            size = sizes.get(units)
            row += [labels.seconds(size.seconds.value), ratio_words(size)[1]] if size else ["-", "-"]
        verdict = one.verdicts.get(units)
        effect = f"{labels.effect(verdict)} {labels.interval(verdict)}".rstrip() if verdict else "-"
        row += ["refused" if units in one.refused else effect, verdict.verdict if verdict else "-"]
        row += [verdict_mark(verdict.verdict) if verdict else "-", _why(verdict)]
        rows.append(row)
    figures = ("seconds", "efficiency")
    sides = [Heading(f"{letter} {figure}", ColumnStyle.NUMBER) for letter in by_side for figure in figures]
    verdict_columns = [
        Heading("verdict", medium=Medium.PRINTED),
        Heading("verdict", medium=Medium.PAGE),
        Heading("why", ColumnStyle.WHY, Medium.PAGE),
    ]
    columns = [
        Heading("threads", ColumnStyle.NUMBER),
        *sides,
        Heading("B against A [interval]", ColumnStyle.NUMBER),
        *verdict_columns,
    ]
    return TextTable(columns, rows, f"Both sides of {one.name} at every size, with verdicts", "cards")


def _why(verdict: Verdict | None) -> str:
    return "; ".join([verdict.reason, *verdict.flags]) if verdict else "only one side has it"


def sides_section(shown: SideBySide) -> Section:
    """A table per workload, both sides in it, then why; numbers are seconds, and ratios minus one."""
    sides = (shown.first, shown.second)
    about = [f"{side.letter}: {side.kind} {side.name}, {side.variant}" for side in sides]
    parts = [SectionPart(lines=about, medium=Medium.PRINTED)]
    plain = []
    for number, one in enumerate(curves(shown)):
        found = sorted(one.verdicts.items())
        why = [f"{units}: {_why(verdict)}" for units, verdict in found if verdict.verdict != "equivalent"]
        sizes = {side.label: one.sizes[side.letter] for side in sides}
        anchor, rule = f"sides-{number}", RULES[one.rule]
        parts += [
            SectionPart(
                f"{one.name} ({rule})",
                table=_table(one),
                anchor=anchor,
                heading=one.name,
                text=[TextSpan(rule, "quiet")],
                charts=[Chart(anchor, f"sides {one.name}", functools.partial(_draw, one.name, sizes))],
            ),
            SectionPart(lines=why, depth=1, medium=Medium.PRINTED),
        ]
        plain.append(
            {
                **dict(one.question),
                "params": json.loads(str(dict(one.question).get("params", "{}"))),
                "rule": one.rule,
                **{
                    letter: [{"threads": size.at.units, **plain_figures(size)} for size in sizes_]
                    for letter, sizes_ in one.sizes.items()
                },
            }
        )
    lone = list(_lone_lines(shown))
    data = {
        "schema": SIDES,
        "sides": {side.letter: {"kind": side.kind, "name": side.name, "variant": side.variant} for side in sides},
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
    margin = 100 * shown.settings.margin
    introduction = (
        "Efficiency compares every size with the smallest one of its own side. Bands are 95 % intervals over runs. "
        "Effect: time of B against A, positive is slower, by Welch’s t on the blocks of each side; p after Holm over "
        f"all cells of this page; a 90 % interval within ±{margin:g} % is equivalent."
    )
    return Section(
        [*parts, SectionPart(lines=lone, heading="Only on one side" if lone else "")],
        data,
        shown.notes,
        title="Curves and verdicts",
        anchor="curves",
        text=[TextSpan(introduction, "quiet")],
    )


def _draw(name: str, sizes: Mapping[str, Sequence[TimeAtSize]]) -> Spec:
    from gpubench.report.charts import curve_chart

    return curve_chart(name, sizes)


def side_seconds(shown: SideBySide) -> list[Seconds]:
    """Of every verdict: the geometric means over the blocks of either side."""
    return [
        (math.exp(statistics.fmean(pair.first.blocks)), math.exp(statistics.fmean(pair.second.blocks)))
        if pair.first.blocks and pair.second.blocks
        else None
        for pair in shown.pairs
    ]


def counts(shown: SideBySide) -> str:
    """``B against A in the 5 cells that both have: 4 equivalent, 1 regression``."""
    refused = sum(bool(pair.refused) for pair in shown.pairs)
    words = [verdict.verdict for verdict, pair in zip(shown.verdicts, shown.pairs, strict=True) if not pair.refused]
    said = [f"{words.count(word)} {word}" for word in labels.MARKS if word in words]
    said += [f"{refused} refused: different layouts or devices"] if refused else []
    return f"B against A in the {counted(len(shown.pairs), 'cell')} that both have: {', '.join(said)}"


def _lone_lines(shown: SideBySide) -> Iterator[str]:
    """Cells that only one side has, each question once with its sizes."""
    found: dict[tuple[str, Key], list[int]] = {}
    for letter, cell in shown.lone:
        found.setdefault((letter, cell.question), []).append(cell.units)
    names = labels.cell_names([dict(question) for _, question in found])
    for ((letter, _), units), name in zip(found.items(), names, strict=True):
        yield f"only {letter} has {name} at {', '.join(map(str, sorted(units)))} threads"
