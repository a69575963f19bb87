"""Numbers and cells in words, the same in the page, in Markdown and in the terminal."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpubench.model.quantities import format_bytes
from gpubench.model.text import counted
from gpubench.node.spec import WorkloadSpec
from gpubench.node.spec.plain import canonical
from gpubench.node.workloads.catalogue import CATALOGUE
from gpubench.node.workloads.catalogue.own import shown
from gpubench.stats.verdict import Verdict

MARKS = {"regression": "▲", "improvement": "▼", "equivalent": "●", "inconclusive": "◆", "broken": "✚"}
"""A sign for each verdict, so that colour is never the only mark; the charts use the same shapes. Up is slower."""

RUN_MARKS = {"ok": "●", "failed": "✕", "skipped": "○", "lost": "∅", "pending": "…"}

Key = Mapping[str, object]


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
    """``[+39, +58]`` in percent, with a decimal where both bounds are small; empty without an interval.

    Two blocks can give a bound of twenty digits: bounds above WIDE are shown as ``>WIDE``. A bound that would read 0
    has more digits, so that one sees on which side of it the interval lies.
    """
    if least is None or most is None:
        return ""
    low, high = 100 * least, 100 * most
    digits = 1 if max(abs(low), abs(high)) < 10 else 0
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
    unknown = verdict.reason.partition(":")[0] in ("no data", "few blocks", "one sample")
    return f"{blocks} may decide" if unknown else f"about {blocks} would decide"


def pair(verdict: Verdict) -> str:
    """``1.19.0 vs 1.17.0``: the baseline stands last."""
    return f"{verdict.candidate} vs {verdict.baseline}"


def baselines(verdicts: Sequence[Verdict]) -> list[str]:
    """Variants that others were compared with, in order of appearance: usually one, the first planned."""
    return list(dict.fromkeys(one.baseline for one in verdicts))


def listed(words: Iterable[str], most: int = 3) -> str:
    """``a, b, c and 4 more``."""
    found = list(words)
    if len(found) <= most:
        return " and ".join(filter(None, (", ".join(found[:-1]), *found[-1:])))
    return f"{', '.join(found[:most])} and {len(found) - most} more"


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


def size(count: int) -> str:
    """Bytes as people write them: ``10 MB``, ``1 KiB``."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= factor and count % factor == 0:
            return f"{count // factor} {unit}"
    return format_bytes(count).replace(".0 ", " ")


_FIELDS = {
    "backend": "{}",
    "nodes": "{} nodes",
    "workers_per_node": "{} workers",
    "workers": "{} workers in all",
    "threads_per_worker": "{} threads",
    "protocol": "{}",
    "device": "{}",
    "site": "on {}",
}
_ON_EACH = "{} on each node"
"""Workers, where those of the whole cluster are named besides."""
_NAMED_BY_THE_WORKLOAD = ("workload", "params", "params_id")


def workload_key(workload: WorkloadSpec) -> Key:
    """The parts of a cell's key that say what was measured."""
    return {"workload": workload.name, "backend": workload.backend, "params": canonical(workload.params).decode()}


def cell_names(keys: Sequence[Key]) -> list[str]:
    """A short unique name per cell: the workload, and only what differs between the cells.

    ``[message 1 KiB, message 10 MB, merge]``; node counts, backends and layouts are named where there are several, and
    so is any other part of a key (a column of a user's table): ``merge gpu=H100``.
    """
    return [_name(key, keys) for key in keys]


def _name(key: Key, keys: Sequence[Key]) -> str:
    alike = [_params(other) for other in keys if other["workload"] == key["workload"]]
    own = _params(key)
    words = [str(key["workload"])]
    words += [_param(words[0], name, own[name]) for name in own if any(other.get(name) != own[name] for other in alike)]
    for field in (*_FIELDS, *(name for name in key if name not in _FIELDS and name not in _NAMED_BY_THE_WORKLOAD)):
        on_each = field == "workers_per_node" and "workers" in key
        beside = [other for other in keys if not on_each or other.get("workers") == key["workers"]]
        if key.get(field) is not None and len({other.get(field) for other in beside}) > 1:
            words.append((_ON_EACH if on_each else _FIELDS.get(field, f"{field}={{}}")).format(key[field]))
    return " ".join(words).replace(" 1 nodes", " 1 node")


def _params(key: Key) -> Mapping[str, Any]:
    """By name; the column ``params`` of a user's table may hold any text, which is one parameter then."""
    text = str(key.get("params", "{}"))
    try:
        plain = json.loads(text)
    except ValueError:
        plain = None
    return plain if isinstance(plain, dict) else {"params": text}


def _param(workload: str, name: str, value: Any) -> str:
    known = CATALOGUE.get(workload)
    kind = known.params[name].kind if known and name in known.params else ""
    return size(value) if kind == "size" else f"{name}={shown(name, value)}"
