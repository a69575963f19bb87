"""Interleaved where clusters can take turns and fit; the plan says why they don't."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from gpubench.model.site import Layout, Node
from gpubench.plan.arrangement import resolve_arrangement
from gpubench.plan.request import Request
from tests.plan.requests_by_hand import GIB, request, site, workload
from tests.workloads.running import complete

LARGE = workload("merge", **complete("merge", {"rows_per_worker": 40_000_000}))
"""Held with 60 % of a quarter of the memory, not of an eighth."""


def resolved(wanted: Request) -> Request:
    return resolve_arrangement(wanted, [wanted.describe(item) for item in wanted.workloads])


def settled(
    words: str = "old=1.17.0 new=1.19.0", changes: dict[str, Any] | None = None, **more: Any
) -> tuple[str, str]:
    layout = Layout(workers=2, one_machine=True, arrangement="auto")
    made = resolved(request(words, site=site(**{"layout": layout, **(changes or {})}), **more))
    return made.site.layout.arrangement, made.not_interleaved


def test_clusters_that_can_take_turns_do() -> None:
    assert settled() == ("interleaved", "")


def test_what_the_profile_names_stays() -> None:
    named = site(layout=Layout(workers=2, arrangement="sequential"))
    assert resolved(request(site=named)) == request(site=named)


def test_one_variant_has_nobody_to_take_turns_with() -> None:
    made = request()
    alone = site(layout=Layout(workers=2, arrangement="auto"))
    made = resolved(dataclasses.replace(made, site=alone, variants=made.variants[:1]))
    assert (made.site.layout.arrangement, made.not_interleaved) == ("sequential", "")


@pytest.mark.parametrize(
    ("changes", "more", "why"),
    [
        ({"runtime": "enroot"}, {}, "runtime enroot isn't known to have several runs on a node at the same time"),
        ({"scheduler": "lsf", "launcher": "jsrun"}, {}, "launcher jsrun starts one run at a time"),
        ({"scheduler": "slurm", "launcher": "srun"}, {}, "launcher srun starts one run at a time"),
        ({"scheduler": "slurm", "launcher": "ssh"}, {}, "launcher ssh starts one run at a time"),
        ({"node": Node(gpus=2)}, {"device": "gpu"}, "the memory pools of several clusters share a GPU"),
        ({}, {"device": "auto"}, "the memory pools of several clusters share a GPU"),
        ({}, {"workloads": [LARGE], "machine_memory": 40 * GIB}, "merge doesn't fit on 1 node x 2 workers"),
    ],
)
def test_elsewhere_one_comes_after_the_other_and_the_reason_is_kept(
    changes: dict[str, Any], more: dict[str, Any], why: str
) -> None:
    arrangement, said = settled(changes=changes, **more)
    assert arrangement == "sequential"
    assert why in said
