"""Which link, and which node, is slower than the others: bandwidths between all pairs of workers.

A link's rate depends on its class (same node, two nodes), its sender, its receiver, and on itself. The logs of the
rates of one class are split into those parts by median polish (Tukey, Exploratory Data Analysis, 1977, ch. 11), so that
one bad link doesn't pull its row along; what is left of a link, over the robust spread of all that is left, says
whether it is one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import special

from gpubench.stats.runs import Floats

LEAST_LEFT = 12
"""Links of a class beyond the parts that are fitted to them: with fewer, nothing is called an outlier."""
LEAST_NODES = 5
LEAST_CHANGE = 0.05
"""What differs less isn't worth a name, however sure it is."""
_POLISHES = 10
_MAD_TO_SD = 1.4826
"""Of a normal distribution."""


@dataclasses.dataclass(frozen=True, slots=True)
class LinkRates:
    """One ordered pair of workers.

    Args:
        sender: name of the worker that sends.
        receiver: name of the worker that receives.
        group: class of the link; only links of one class are compared.
        rates: bytes per second, one of each run.
    """

    sender: str
    receiver: str
    group: str
    rates: tuple[float, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Outlier:
    """A slow ``link`` or ``node``: ``ratio`` to the rate that the others foretell, and ``z`` in robust deviations."""

    what: str
    group: str
    names: tuple[str, ...]
    ratio: float
    z: float


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """Links of one class: rates in bytes per second; ``detectable`` is the ratio of a slow link that is found in 95 of
    100 matrices like this one, None where there are too few links to judge."""

    name: str
    links: int
    median: float
    slowest: float
    fastest: float
    detectable: float | None


@dataclasses.dataclass(frozen=True, slots=True)
class LinkReport:
    """All classes, and the outliers, the slowest first."""

    groups: list[Group]
    outliers: list[Outlier]


def judge_links(links: Sequence[LinkRates], nodes: Mapping[str, str], alpha: float = 0.05) -> LinkReport:
    """Find links and nodes that are slower than their class, sender and receiver foretell.

    Rates of several runs enter by their median. The threshold is Bonferroni's: in a matrix of sound links with normal
    noise one is called slow with probability alpha at most, however many links there are.

    Args:
        links: of one workload under one variant; those without a rate are left out.
        nodes: name of each worker's node.
        alpha: per class.
    """
    groups, outliers = [], []
    for name in dict.fromkeys(link.group for link in links):
        members = [link for link in links if link.group == name and link.rates]
        if members:
            polished = _polish(members)
            groups.append(_group(name, members, polished, alpha))
            outliers += [*_slow_links(name, members, polished, alpha), *_slow_nodes(name, polished, nodes, alpha)]
    return LinkReport(groups, sorted(outliers, key=lambda one: one.ratio))


@dataclasses.dataclass(frozen=True)
class _Polished:
    """Logs: what is left of each link, the robust deviation of that (None: too few), and both parts of each worker."""

    left: Floats
    deviation: float | None
    workers: list[str]
    sending: Floats
    receiving: Floats


def _polish(links: Sequence[LinkRates]) -> _Polished:
    workers = sorted({name for link in links for name in (link.sender, link.receiver)})
    place = {name: position for position, name in enumerate(workers)}
    rows = np.array([place[link.sender] for link in links])
    columns = np.array([place[link.receiver] for link in links])
    left = np.array([math.log(float(np.median(link.rates))) for link in links])
    left -= np.median(left)
    parts = np.zeros((2, len(workers)))
    for _ in range(_POLISHES):
        for side, ends in zip(parts, (rows, columns), strict=True):
            for worker in range(len(workers)):
                mine = ends == worker
                if mine.any():
                    middle = np.median(left[mine])
                    left[mine] -= middle
                    side[worker] += middle
    fitted = len(set(rows.tolist())) + len(set(columns.tolist())) - 1
    spare = len(links) - fitted
    if spare < LEAST_LEFT:
        return _Polished(left, None, workers, *parts)
    # What is fitted shrinks what is left, as in a regression.
    deviation = _MAD_TO_SD * float(np.median(np.abs(left))) * math.sqrt(len(links) / spare)
    return _Polished(left, deviation, workers, *parts)


def _threshold(alpha: float, count: int) -> float:
    return float(-special.ndtri(alpha / max(1, count)))


def _group(name: str, links: Sequence[LinkRates], polished: _Polished, alpha: float) -> Group:
    rates = [float(np.median(link.rates)) for link in links]
    detectable = None
    if polished.deviation is not None:
        least = (_threshold(alpha, len(links)) - float(special.ndtri(0.05))) * polished.deviation
        detectable = min(1 - LEAST_CHANGE, math.exp(-least))
    return Group(name, len(links), float(np.median(rates)), min(rates), max(rates), detectable)


def _slow_links(name: str, links: Sequence[LinkRates], polished: _Polished, alpha: float) -> list[Outlier]:
    if not polished.deviation:
        return []
    limit = min(-_threshold(alpha, len(links)) * polished.deviation, math.log(1 - LEAST_CHANGE))
    return [
        Outlier("link", name, (link.sender, link.receiver), math.exp(left), left / polished.deviation)
        for link, left in zip(links, polished.left.tolist(), strict=True)
        if left < limit
    ]


def _slow_nodes(name: str, polished: _Polished, nodes: Mapping[str, str], alpha: float) -> list[Outlier]:
    """A node whose workers both send and receive slowly, against the other nodes."""
    by_node: dict[str, list[float]] = {}
    for worker, sending, receiving in zip(polished.workers, polished.sending, polished.receiving, strict=True):
        by_node.setdefault(nodes[worker], []).append((sending + receiving) / 2)
    if len(by_node) < LEAST_NODES:
        return []
    effects = {node: float(np.median(values)) for node, values in by_node.items()}
    middle = float(np.median(list(effects.values())))
    deviation = _MAD_TO_SD * float(np.median([abs(value - middle) for value in effects.values()]))
    # A spread of a handful of nodes is itself uncertain: Student's threshold instead of the normal's.
    limit = -special.stdtrit(len(effects) - 1, alpha / len(effects)) * deviation
    return [
        Outlier(
            "node", name, (node,), math.exp(value - middle), (value - middle) / deviation if deviation else -math.inf
        )
        for node, value in effects.items()
        if value - middle < -max(limit, -math.log(1 - LEAST_CHANGE))
    ]
