"""Which link, and which node, is slower than the others: bandwidths between all pairs of workers.

The log of a link's rate is the sum of a part of its sender, one of its receiver, and its own. A link is an outlier
when its own part is, by the test for one outlier in a regression: the residual over its deviation without that link,
Student's t, Bonferroni over all links (Cook & Weisberg, Residuals and Influence in Regression, 1982, ch. 2). The worst
is taken out and the rest looked at again, so that several don't hide each other. Classes of links (same node, two
nodes) are looked at apart.
"""

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence

import numpy as np

from gpubench.stats import special
from gpubench.stats.runs import Bools, Floats, Ints

LEAST_LEFT = 4
"""Links of a class beyond the parts that are fitted to them: with fewer, nothing is called an outlier."""
LEAST_NODES = 5
MOST_WORKERS = 512
"""Of a class: the fit inverts a dense matrix of twice as many rows, which takes minutes for thousands of workers."""
LEAST_CHANGE = 0.05
"""What differs less isn't worth a name, however sure it is."""
MOST_OUTLIERS = 0.1
"""Of a class's links: if more are outliers, the rest is no rule that they could be exceptions to."""
_ZERO = 1e-12


@dataclasses.dataclass(frozen=True, slots=True)
class LinkRates:
    """One ordered pair of workers.

    Args:
        group: class of the link; only links of one class are compared.
        rates: bytes per second, one of each run.
    """

    sender: str
    receiver: str
    group: str
    rates: tuple[float, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Outlier:
    """A slow ``link`` or ``node``: ``ratio`` to the rate that the others foretell, and Student's ``t``."""

    what: str
    group: str
    names: tuple[str, ...]
    ratio: float
    t: float


@dataclasses.dataclass(frozen=True, slots=True)
class LinkGroup:
    """Links of one class between ``workers`` workers: rates in bytes per second; ``detectable`` is the ratio of a slow
    link that is found in 95 of 100 matrices like this one, None where there are too few links, or too many workers, to
    judge."""

    name: str
    workers: int
    links: int
    median: float
    slowest: float
    fastest: float
    detectable: float | None


@dataclasses.dataclass(frozen=True, slots=True)
class LinkReport:
    """All classes, and the outliers, the slowest first."""

    groups: list[LinkGroup]
    outliers: list[Outlier]


def judge_links(links: Sequence[LinkRates], nodes: Mapping[str, str], alpha: float = 0.05) -> LinkReport:
    """Find links and nodes that are slower than their class, sender and receiver foretell.

    Rates of several runs enter by their median. A class of more than ``MOST_WORKERS`` workers is described, not judged.
    In a class of sound links with normal noise one is called slow with probability alpha at most, however many links
    there are; so is one of the nodes.

    Args:
        links: of one workload under one variant; those without a rate are left out.
        nodes: name of each worker's node.
        alpha: per class.
    """
    groups, outliers = [], []
    for name in dict.fromkeys(link.group for link in links):
        members = [link for link in links if link.group == name and link.rates]
        workers = len({end for link in members for end in (link.sender, link.receiver)})
        if not members:
            continue
        detectable = None
        if workers <= MOST_WORKERS:
            fits = _without_outliers(members, alpha)
            detectable = fits[-1].detectable
            for fit in fits[:-1]:
                link, left, t = members[fit.worst], fit.deleted_residual[fit.worst], float(fit.t[fit.worst])
                if t < 0:
                    outliers.append(Outlier("link", name, (link.sender, link.receiver), math.exp(left), t))
            outliers += _slow_nodes(name, fits[-1], nodes, alpha)
        rates = [statistics.median(link.rates) for link in members]
        median = float(np.median(rates))
        groups.append(LinkGroup(name, workers, len(members), median, min(rates), max(rates), detectable))
    worth = [outlier for outlier in outliers if outlier.ratio < 1 - LEAST_CHANGE]
    return LinkReport(groups, sorted(worth, key=lambda outlier: outlier.ratio))


@dataclasses.dataclass(frozen=True)
class _Equations:
    """Normal equations of the links that are ``used``: ``inverse`` of their matrix, and ``sums``, their other side.

    ``rows`` and ``columns`` are the positions of each link's sender and receiver among the parts, ``logs`` of its rate.
    """

    workers: list[str]
    rows: Ints
    columns: Ints
    logs: Floats
    used: Bools
    inverse: Floats
    sums: Floats

    @staticmethod
    def of(links: Sequence[LinkRates]) -> "_Equations":
        """Of all links."""
        workers = sorted({name for link in links for name in (link.sender, link.receiver)})
        position = {name: number for number, name in enumerate(workers)}
        rows = np.array([position[link.sender] for link in links])
        columns = np.array([position[link.receiver] for link in links]) + len(workers)
        logs = np.array([math.log(statistics.median(link.rates)) for link in links])
        products, sums = np.zeros((2 * len(workers), 2 * len(workers))), np.zeros(2 * len(workers))
        for ends in ((rows, rows), (columns, columns), (rows, columns), (columns, rows)):
            np.add.at(products, ends, 1.0)
        for end in (rows, columns):
            np.add.at(sums, end, logs)
        # Not invertible: senders and receivers share a constant, and classes fall apart.
        inverse = np.asarray(np.linalg.pinv(products, hermitian=True), dtype=np.float64)
        return _Equations(workers, rows, columns, logs, np.ones(len(links), dtype=bool), inverse, sums)

    def without(self, link: int) -> "_Equations":
        """Without a link, by its number: the inverse changes by a matrix of rank one (Sherman & Morrison 1950), which
        takes much less time than to invert a matrix again."""
        ends = np.array([self.rows[link], self.columns[link]])
        change = self.inverse[:, ends].sum(axis=1)
        inverse = self.inverse + np.outer(change, change) / (1 - change[ends].sum())
        sums, used = self.sums.copy(), self.used.copy()
        sums[ends] -= self.logs[link]
        used[link] = False
        return dataclasses.replace(self, used=used, inverse=inverse, sums=sums)


class _Fit:
    """Least squares on the links that ``given`` uses; arrays have an entry for each link of the class.

    ``deleted_residual`` of a link is its distance from the fit to the others, NaN where it isn't used; ``t`` the same
    over its deviation; ``freedom`` the residual degrees of freedom; ``deviation`` that of one link's own part;
    ``parts`` of each worker those of its sending and of its receiving half, together; ``threshold`` what ``t`` of an
    outlier exceeds.
    """

    def __init__(self, given: _Equations, alpha: float) -> None:
        rows, columns, used, inverse = given.rows, given.columns, given.used, given.inverse
        parts = inverse @ given.sums
        sending, receiving = np.split(parts, 2)
        self.given, self.parts, self.count = given, sending + receiving, int(used.sum())
        leverage = inverse[rows, rows] + inverse[columns, columns] + 2 * inverse[rows, columns]
        residual = np.where(used, given.logs - parts[rows] - parts[columns], np.nan)
        self.freedom = round(self.count - float(leverage[used].sum()))
        self.deleted_residual = self.t = np.full(len(rows), np.nan)
        self.deviation = self.threshold = math.nan
        if self.freedom >= 2:
            free = np.where(used & (leverage < 1 - _ZERO), 1 - leverage, np.nan)
            total = float(np.nansum(residual**2))
            without = np.sqrt(np.maximum(total - residual**2 / free, _ZERO**2) / (self.freedom - 1))
            self.deleted_residual, self.t = residual / free, residual / (without * np.sqrt(free))
            self.deviation = math.sqrt(total / self.freedom)
            self.threshold = float(-special.stdtrit(self.freedom - 1, alpha / 2 / max(1, self.count)))

    @property
    def worst(self) -> int:
        """Position of the link that is farthest off."""
        return int(np.nanargmax(np.abs(self.t)))

    @property
    def detectable(self) -> float | None:
        """The ratio of a slow link that is found in 95 of 100 matrices like this one."""
        if self.freedom < LEAST_LEFT:
            return None
        least = (self.threshold + 1.645) * self.deviation / math.sqrt(self.freedom / self.count)
        return min(1 - LEAST_CHANGE, math.exp(-least))


def _without_outliers(links: Sequence[LinkRates], alpha: float) -> list[_Fit]:
    """Fits to fewer and fewer links; the worst of each but the last is an outlier."""
    fits = [_Fit(_Equations.of(links), alpha)]
    while fits[-1].freedom >= LEAST_LEFT and len(fits) <= MOST_OUTLIERS * len(links):
        last = fits[-1]
        if np.abs(last.t[last.worst]) <= last.threshold:
            break
        fits.append(_Fit(last.given.without(last.worst), alpha))
    return fits


def _slow_nodes(name: str, fit: _Fit, nodes: Mapping[str, str], alpha: float) -> list[Outlier]:
    """Nodes whose workers both send and receive slowly: the same test on the nodes' means (Grubbs 1950)."""
    by_node: dict[str, list[float]] = {}
    for worker, part in zip(fit.given.workers, fit.parts.tolist(), strict=True):
        by_node.setdefault(nodes[worker], []).append(part / 2)
    effects = {node: float(np.mean(values)) for node, values in by_node.items()}
    outliers = []
    while len(effects) >= LEAST_NODES:
        slowest = min(effects, key=effects.__getitem__)
        others = [value for node, value in effects.items() if node != slowest]
        apart = effects[slowest] - float(np.mean(others))
        spread = float(np.std(others, ddof=1)) * math.sqrt(1 + 1 / len(others))
        t = apart / spread if spread > _ZERO else (-math.inf if apart < -_ZERO else 0.0)
        if t > special.stdtrit(len(others) - 1, alpha / len(effects)):
            break
        outliers.append(Outlier("node", name, (slowest,), math.exp(apart), t))
        del effects[slowest]
    return outliers
