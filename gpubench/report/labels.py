"""Numbers and cells in words, the same in the page, in Markdown and in the terminal."""

from collections.abc import Iterable, Sequence

from gpubench.model.text import counted
from gpubench.stats.verdict import Verdict

MARKS = {"regression": "▲", "improvement": "▼", "equivalent": "●", "inconclusive": "◆", "broken": "✚"}
"""A sign for each verdict, so that colour is never the only mark; the charts use the same shapes. Up is slower."""

RUN_MARKS = {"ok": "●", "failed": "✕", "skipped": "○", "lost": "∅", "pending": "…"}

WIDE = 999
_FIVE_DIGITS = 9_999.5


def percent(ratio: float) -> str:
    """``0.4812`` → ``+48.1 %``."""
    return f"{100 * ratio:+z.1f} %"


def effect(verdict: Verdict) -> str:
    """``+48.1 %``, or ``no data``."""
    return "no data" if verdict.effect is None else percent(verdict.effect)


def interval(verdict: Verdict) -> str:
    """The interval that agrees with the verdict, as ``between``."""
    return between(*verdict.shown)


def between(least: float | None, most: float | None) -> str:
    """``[+39, +58]`` in percent, with a decimal where both bounds are small or close; empty without an interval.

    Two blocks can give a bound of twenty digits: bounds above WIDE are shown as ``>WIDE``. A bound that would read 0
    has more digits, so that one sees on which side of it the interval lies.
    """
    if least is None or most is None:
        return ""
    low, high = 100 * least, 100 * most
    digits = 1 if max(abs(low), abs(high)) < 10 or high - low < 2 else 0
    return f"[{_bound(low, digits)}, {_bound(high, digits)}]"


def _bound(percent: float, digits: int) -> str:
    if percent > WIDE:
        return f">+{WIDE}"
    if percent and not round(percent, digits):
        return f"{percent:+.1g}"
    return f"{percent:+z.{digits}f}"


def more(verdict: Verdict) -> str:
    """``about 4 more blocks would decide``; empty where that is unknown or not needed.

    If there are too few blocks to estimate noise, the needed number is unknown: ``5 more blocks may decide``.
    """
    if not verdict.more_blocks:
        return ""
    blocks = counted(verdict.more_blocks, "more block")
    unknown = verdict.reason.partition(":")[0] in ("no data", "few blocks", "one sample", "failed")
    return f"{blocks} may decide" if unknown else f"about {blocks} would decide"


def pair(verdict: Verdict) -> str:
    """``1.19.0 vs 1.17.0``: the baseline stands last."""
    return f"{verdict.candidate} vs {verdict.baseline}"


def baselines(verdicts: Sequence[Verdict]) -> list[str]:
    """Variants that others were compared with, in order of appearance: usually one, the first planned."""
    return list(dict.fromkeys(verdict.baseline for verdict in verdicts))


def listed(names: Iterable[str], most: int = 3) -> str:
    """``a, b, c and 4 more``."""
    listing = list(names)
    if len(listing) <= most:
        return " and ".join(filter(None, (", ".join(listing[:-1]), *listing[-1:])))
    return f"{', '.join(listing[:most])} and {len(listing) - most} more"


def seconds(value: float) -> str:
    """Four digits and a unit: ``5.213 ms``; above them whole seconds."""
    if value >= _FIVE_DIGITS:
        return f"{value:.0f} s"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 1:
            return f"{value * factor:.4g} {unit}"
    return f"{value * 1e9:.4g} ns"


def short(value: float) -> float:
    """Five digits are more than any picture shows."""
    return float(f"{value:.5g}")
