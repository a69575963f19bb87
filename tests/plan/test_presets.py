"""Sizes that fit: shares of a worker's memory, around what the user fixed."""

from typing import Any

import pytest

from gpubench.errors import PlanRefusedError
from gpubench.node.workloads.catalogue import CATALOGUE, Shape
from gpubench.plan.size_presets import FACTORS, SHARES, size_preset

GIB = 1024**3
SHAPE = Shape(nodes=1, workers_per_node=2, threads_per_worker=1)


def sizes(name: str, size: str, memory: int = 8 * GIB, **fixed: Any) -> dict[str, Any]:
    params = {key: param.default for key, param in CATALOGUE[name].params.items()} | fixed
    return {**params, **size_preset(CATALOGUE[name], params, size, fixed=fixed, shape=SHAPE, memory=memory)}


HOLDING = [
    name
    for name, one in CATALOGUE.items()
    if one.grows and one.held({key: param.default for key, param in one.params.items()}, SHAPE)
]


@pytest.mark.parametrize("size", SHARES)
@pytest.mark.parametrize("name", HOLDING)
def test_a_preset_holds_its_share_of_a_workers_memory_or_slightly_less(name: str, size: str) -> None:
    held = CATALOGUE[name].held(sizes(name, size), SHAPE)
    assert 0.8 * SHARES[size] * 8 * GIB <= held <= SHARES[size] * 8 * GIB


@pytest.mark.parametrize("size", FACTORS)
def test_what_holds_nothing_is_measured_at_multiples_of_its_defaults(size: str) -> None:
    assert sizes("tasks", size, memory=0)["count"] == 500 * FACTORS[size]


def test_sizes_have_two_digits() -> None:
    rows = str(sizes("merge", "medium")["rows_per_worker"])
    assert set(rows[2:]) == {"0"}


def test_what_the_user_fixed_stays_and_the_rest_grows_around_it() -> None:
    params = sizes("transpose-sum", "large", chunk=500)
    assert params["chunk"] == 500
    held = CATALOGUE["transpose-sum"].held(params, SHAPE)
    assert 3.5 * GIB < held <= 4 * GIB
    assert sizes("merge", "large", rows_per_worker=7)["rows_per_worker"] == 7


def test_without_a_known_memory_a_share_of_it_is_refused() -> None:
    with pytest.raises(PlanRefusedError, match="it is not known how much memory"):
        sizes("merge", "small", memory=0)
