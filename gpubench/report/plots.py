"""The headline charts in plain characters: effects with their intervals, and efficiency by size of the cluster."""

import itertools
from collections.abc import Iterator, Mapping, Sequence

from gpubench.model.cell_names import cell_names
from gpubench.report import labels
from gpubench.report.effect_range import effect_range
from gpubench.report.scaling import percent
from gpubench.results.curves import Curve
from gpubench.stats.scaling import Interval, SpeedupAtSize, speedups
from gpubench.stats.verdict import Verdict

_LEAST_PLOT = 24
_TEXT = 22
"""``+48.3 % [+39, +58]`` and its like."""
_CLIP = 4.0
"""Times the ideal: the rest is cut."""


def effect_plot(verdicts: Sequence[Verdict], margin: float, width: int) -> Iterator[str]:
    """One line per comparison: ``o`` the effect, ``-`` its interval, ``|`` no difference, ``:`` the margins.

    All share one scale. What lies beyond the picture, and an interval that leaves it, ends in ``<`` or ``>``. Names
    that leave too little room have their own line.
    """
    names = cell_names([verdict.key for verdict in verdicts])
    drawn = [
        (verdict, name, Interval(verdict.effect, *verdict.shown))
        for verdict, name in zip(verdicts, names, strict=True)
        if verdict.effect is not None
    ]
    if not drawn:
        return
    domain = effect_range(verdicts, margin)
    column, columns = _columns([name for _, name, _ in drawn], width)
    yield f"effect in %, slower to the right: o with its interval, : margin of {100 * margin:g} %"
    ends = [labels.percent(end) for end in domain]
    yield f"{'':{column}} {ends[0]}{ends[1]:>{columns - len(ends[0])}}"
    ticks = {-margin: ":", margin: ":", 0.0: "|"}
    for pair, rows in itertools.groupby(sorted(drawn, key=_pair), key=_pair):
        yield pair
        for verdict, name, effect in rows:
            text = f"{labels.effect(verdict)} {labels.interval(verdict)}".rstrip()
            yield from _line(name, _bar(effect, domain, columns, ticks), text, column)


def efficiency_plot(curves: Sequence[Curve], width: int) -> Iterator[str]:
    """One line per size of each workload and variant: efficiency from 0 to its largest, ``|`` the ideal of 100 %.

    Workloads without a rule of scaling, and workloads with only one size, are left out.
    """
    names = cell_names([dict(curve.key) for curve in curves])
    scaled = {
        f"{name}, {curve.variant}": speedups(curve.measured, curve.rule)
        for curve, name in zip(curves, names, strict=True)
        if curve.rule != "none"
    }
    scaled = {name: sizes for name, sizes in scaled.items() if len(sizes) > 1}
    if not scaled:
        return
    every = [size for sizes in scaled.values() for size in sizes]
    column, columns = _columns([_place(size) for size in every], width)
    most = min(_CLIP, max(1.0, *(size.efficiency.high or size.efficiency.value for size in every)))
    yield "efficiency by nodes x workers: o with its 95 % interval, | is 100 %"
    for name, sizes in scaled.items():
        yield name
        for size in sizes:
            line = _bar(size.efficiency, (0.0, most), columns, {1.0: "|"})
            yield from _line(_place(size), line, percent(size.efficiency), column)


def _pair(row: tuple[Verdict, str, Interval]) -> str:
    return labels.pair(row[0])


def _place(size: SpeedupAtSize) -> str:
    return f"  {size.at.nodes} x {size.at.workers_per_node}"


def _columns(names: Sequence[str], width: int) -> tuple[int, int]:
    """Of the names, and of the picture beside them."""
    room = width - _TEXT - 2
    longest = max(map(len, names))
    column = longest if longest <= room - _LEAST_PLOT else 2
    return column, max(_LEAST_PLOT, room - column)


def _line(name: str, picture: str, text: str, column: int) -> Iterator[str]:
    if len(name) > column:
        yield name
        name = ""
    yield f"{name:<{column}} {picture} {text}"


def _bar(interval: Interval, domain: tuple[float, float], columns: int, ticks: Mapping[float, str]) -> str:
    start, end = domain

    def place(at: float) -> int:
        inside = min(max(at, start), end)
        return round((inside - start) / (end - start) * (columns - 1))

    cells = [" "] * columns
    if interval.low is not None and interval.high is not None:
        cells[place(interval.low) : place(interval.high) + 1] = "-" * (place(interval.high) + 1 - place(interval.low))
    for at, sign in ticks.items():
        cells[place(at)] = sign
    if interval.low is not None and interval.low < start:
        cells[0] = "<"
    if interval.high is not None and interval.high > end:
        cells[-1] = ">"
    cells[place(interval.value)] = "<" if interval.value < start else ">" if interval.value > end else "o"
    return "".join(cells)
