"""How much memory a worker may use when the plan couldn't know its node."""

from typing import Any

import pytest

from gpubench.node.dask_processes import worker_arguments
from gpubench.node.spec.memory import usable_memory
from tests.node.specs_by_hand import run_spec


@pytest.mark.parametrize("planned", [0, 123456789])
def test_a_limit_that_the_plan_left_open_is_a_share_of_half_of_the_node(planned: int) -> None:
    changes: dict[str, Any] = {"memory_limit": planned, "workers_per_node": 4}
    words = worker_arguments(run_spec(**changes), "tcp://127.0.0.1:1", "w", "/tmp")
    half = usable_memory() // 2
    assert int(words[words.index("--memory-limit") + 1]) == (planned or half // 4)
