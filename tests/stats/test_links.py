"""A slow link and a slow node are found in a noisy matrix, and sound ones left alone."""

from __future__ import annotations

import itertools
import math
import statistics

import numpy as np
import pytest

from gpubench.report.links import group_text
from gpubench.stats.links import MOST_WORKERS, LinkGroup, LinkRates, LinkReport, judge_links
from tests.conftest import examples

RATE = 10e9


def matrix(
    nodes: int,
    per_node: int,
    *,
    seed: int,
    noise: float = 0.02,
    slow: dict[tuple[int, int], float] | None = None,
    slow_node: tuple[int, float] | None = None,
    runs: int = 5,
) -> tuple[list[LinkRates], dict[str, str]]:
    """All ordered pairs; every worker has a speed of its own, links between nodes have a fifth of those inside."""
    rng = np.random.default_rng(seed)
    workers = [f"n{node}-{index}" for node in range(nodes) for index in range(per_node)]
    places = {name: name.partition("-")[0] for name in workers}
    own = rng.normal(0, 0.05, (2, len(workers)))
    links = []
    for i, sender in enumerate(workers):
        for j, receiver in enumerate(workers):
            if i == j:
                continue
            same = places[sender] == places[receiver]
            rate = RATE * (1 if same else 0.2) * np.exp(own[0, i] + own[1, j])
            rate *= (slow or {}).get((i, j), 1.0)
            if slow_node and not same and f"n{slow_node[0]}" in (places[sender], places[receiver]):
                rate *= slow_node[1]
            rates = rate * np.exp(rng.normal(0, noise, runs))
            links.append(LinkRates(sender, receiver, "same node" if same else "two nodes", tuple(rates)))
    return links, places


def test_a_link_15_percent_slow_in_a_64_by_64_matrix_is_found_and_hardly_a_sound_one_accused() -> None:
    found = false = 0
    matrices = examples(6)
    for seed in range(matrices):
        pair = (seed % 32, 63 - seed % 32)
        report = judge_links(*matrix(64, 1, seed=seed, slow={pair: 0.85}))
        names = [one.names for one in report.outliers if one.what == "link"]
        found += (f"n{pair[0]}-0", f"n{pair[1]}-0") in names
        false += len(names) - ((f"n{pair[0]}-0", f"n{pair[1]}-0") in names)
    assert found >= 0.95 * matrices
    assert false <= 0.17 * matrices, "of 4,032 sound links in each"


@pytest.mark.parametrize(("ratio", "found"), [(0.97, []), (0.9, [("n1-0", "n2-0")])])
def test_a_link_that_is_surely_slower_but_hardly_is_no_outlier(ratio: float, found: list[tuple[str, str]]) -> None:
    report = judge_links(*matrix(8, 1, seed=1, noise=0.001, slow={(1, 2): ratio}))
    assert [one.names for one in report.outliers] == found


def test_classes_are_judged_apart_and_described() -> None:
    report = judge_links(*matrix(4, 8, seed=1, slow={(0, 1): 0.8}))
    assert [(group.name, group.links) for group in report.groups] == [("same node", 224), ("two nodes", 768)]
    same, two = report.groups
    assert same.median == pytest.approx(RATE, rel=0.1)
    assert two.median == pytest.approx(RATE / 5, rel=0.1)
    assert two.detectable is not None, two
    assert 0.85 < two.detectable <= 0.95
    assert [(one.what, one.group, one.names) for one in report.outliers] == [("link", "same node", ("n0-0", "n0-1"))]
    assert report.outliers[0].ratio == pytest.approx(0.8, rel=0.05)


def test_a_slow_node_is_named_once_and_none_of_its_links() -> None:
    links, places = matrix(16, 2, seed=2, slow_node=(3, 0.7))
    report = judge_links(links, places)
    assert [(one.what, one.names) for one in report.outliers] == [("node", ("n3",))]


def test_sound_matrices_accuse_nobody_more_often_than_promised() -> None:
    accused = sum(bool(judge_links(*matrix(8, 2, seed=seed)).outliers) for seed in range(100, 140))
    assert accused <= 8, "40 matrices of two classes, 5 % each for links and for nodes"


def test_a_handful_of_links_is_described_but_not_judged() -> None:
    report = judge_links(*matrix(2, 1, seed=3, slow={(0, 1): 0.5}))
    assert report.outliers == []
    assert report.groups[0].detectable is None
    assert report.groups[0].slowest < report.groups[0].fastest


def test_the_only_link_of_a_worker_says_nothing_and_stands_in_nobodys_way() -> None:
    links, places = matrix(8, 1, seed=4, slow={(2, 5): 0.5})
    alone = LinkRates("n8-0", "n0-0", "two nodes", (RATE / 100,) * 5)
    report = judge_links([*links, alone], {**places, "n8-0": "n8"})
    assert [one.names for one in report.outliers if one.what == "link"] == [("n2-0", "n5-0")]


def test_links_without_a_rate_are_left_out() -> None:
    report = judge_links([LinkRates("a", "b", "same node", ())], {"a": "n1", "b": "n1"})
    assert report.groups == report.outliers == []


def test_a_class_of_too_many_workers_is_described_and_not_judged() -> None:
    names = [f"n{number}/0" for number in range(MOST_WORKERS + 1)]
    ring = [LinkRates(one, other, "two nodes", (1e9,)) for one, other in itertools.pairwise([*names, names[0]])]
    report = judge_links(ring, {name: name for name in names})
    assert report == LinkReport([LinkGroup("two nodes", len(names), len(names), 1e9, 1e9, 1e9, None)], [])
    assert group_text(report.groups[0]).endswith("; slow links are not searched for among more than 512 workers")


def test_links_taken_out_one_by_one_leave_the_fit_of_those_that_are_left() -> None:
    slow = {(1, 9): 0.5, (4, 2): 0.6, (7, 12): 0.4}
    links, nodes = matrix(8, 2, seed=3, slow=slow)
    found = judge_links(links, nodes)
    out = {one.names for one in found.outliers}
    assert len(out) == len(slow)
    left = judge_links([link for link in links if (link.sender, link.receiver) not in out], nodes)
    assert left.outliers == []
    for one, other in zip(found.groups, left.groups, strict=True):
        assert one.detectable == pytest.approx(other.detectable, rel=1e-9)


def test_how_far_off_a_slow_node_is_counts_in_deviations_of_one_more_of_the_others() -> None:
    logs = {"n0": 0.0, "n1": 0.01, "n2": -0.01, "n3": 0.03, "n4": -0.02, "n5": 0.02, "n6": -0.5}
    links = [
        LinkRates(one, other, "two nodes", (1e9 * math.exp(logs[one] + logs[other]),))
        for one, other in itertools.permutations(logs, 2)
    ]
    (found,) = judge_links(links, {name: name for name in logs}).outliers
    others = [value for name, value in logs.items() if name != "n6"]
    apart = logs["n6"] - statistics.mean(others)
    assert (found.what, found.names) == ("node", ("n6",))
    assert found.ratio == pytest.approx(math.exp(apart))
    # Student's t of one new value: Grubbs 1950, with the value itself left out of the deviation.
    assert found.t == pytest.approx(apart / (statistics.stdev(others) * math.sqrt(1 + 1 / 6)))


@pytest.mark.parametrize(("slow", "nodes", "t"), [(-0.5, 5, [-math.inf]), (0.0, 5, []), (-0.5, 4, [])])
def test_among_at_least_five_nodes_a_slower_one_is_an_outlier(slow: float, nodes: int, t: list[float]) -> None:
    logs = {f"n{number}": slow if number == 1 else 0.0 for number in range(nodes)}
    links = [
        LinkRates(one, other, "two nodes", (1e9 * math.exp(logs[one] + logs[other]),))
        for one, other in itertools.permutations(logs, 2)
    ]
    assert [one.t for one in judge_links(links, {name: name for name in logs}).outliers] == t


@pytest.mark.parametrize(("t", "found"), [(-4.4, 0), (-4.7, 1)])  # Student's t of 3 degrees at 5 % / 5 nodes: -4.54
def test_a_node_is_slow_by_students_t_of_the_others_and_bonferroni_over_all(t: float, found: int) -> None:
    others = [0.0, 0.02, -0.02, 0.04]
    slow = statistics.mean(others) + t * statistics.stdev(others) * math.sqrt(1 + 1 / 4)
    logs = {f"n{number}": value for number, value in enumerate([*others, slow])}
    links = [
        LinkRates(one, other, "two nodes", (1e9 * math.exp(logs[one] + logs[other]),))
        for one, other in itertools.permutations(logs, 2)
    ]
    assert len(judge_links(links, {name: name for name in logs}).outliers) == found
