"""Which jobs of a standing cluster are given back for a count of nodes."""

from __future__ import annotations

import itertools
import types
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.clusters.resize import choose
from gpubench.errors import UsageError


def jobs_of(sizes: list[int]) -> list[Any]:
    return [types.SimpleNamespace(job=f"g{rank}", nodes=nodes, first_rank=rank) for rank, nodes in enumerate(sizes)]


@given(sizes=st.lists(st.integers(1, 9), max_size=7), nodes=st.integers(0, 30))
def test_jobs_that_fit_exactly_are_chosen_few_and_new_ones_first(sizes: list[int], nodes: int) -> None:
    newest = jobs_of(sizes)[::-1]
    subsets = [some for count in range(1, len(sizes) + 1) for some in itertools.combinations(newest, count)]
    fitting = [list(some) for some in subsets if sum(job.nodes for job in some) == nodes]
    if fitting:
        assert choose(cast("Any", newest), nodes) == fitting[0]
    else:
        with pytest.raises(UsageError, match="only the job" if not sizes else "no set of jobs has"):
            choose(cast("Any", newest), nodes)


def test_two_hundred_jobs_that_can_only_be_given_back_almost_all_are_no_riddle() -> None:
    jobs = jobs_of([1 + number * 7 % 64 for number in range(200)])
    total = sum(job.nodes for job in jobs)
    assert sum(job.nodes for job in choose(cast("Any", jobs), total - 64)) == total - 64
