"""How many tasks come next, what is kept of a batch, and which parameters don't go together."""

from typing import Any

import pytest

from gpubench.errors import UsageError
from gpubench.model.suite import Suite
from gpubench.node.workloads.task_clients import TaskBatch, counted, joined, next_size, quantiles, shares
from tests.workloads.running import complete


def batch(count: int, seconds: float) -> TaskBatch:
    return TaskBatch(count, 10.0, 10.0 + seconds / 2, 10.0 + seconds, {"7": count}, [])


def sizes(rate: float, **params: Any) -> list[int]:
    """Of a cluster that does ``rate`` tasks a second, whatever the batch."""
    done: list[TaskBatch] = []
    while (size := next_size(complete("tasks", params), done)) is not None:
        done.append(batch(size, size / rate))
    return [one.count for one in done]


def test_each_mode_takes_the_batches_that_parsl_perf_takes() -> None:
    assert sizes(100.0, mode="estimate", target=5.0) == [10, 500]
    assert sizes(1.0, mode="estimate", target=2.0) == [10, 2]  # at least two: the first is the warm-up
    assert sizes(0.1, mode="estimate", target=2.0) == [10, 1]  # and never without a task
    assert sizes(100.0, mode="exponential", target=1.0) == [10, 20, 40, 80, 160]
    assert sizes(1.0, mode="exponential", target=1.0) == [10, 20]
    assert sizes(1.0, mode="explicit", batches=[3, 1, 2]) == [3, 1, 2]
    assert sizes(1.0, mode="fixed", count=7) == [7]


def test_an_estimate_goes_on_until_a_batch_takes_three_quarters_of_the_target() -> None:
    params = complete("tasks", {"mode": "estimate", "target": 10.0})
    assert next_size(params, [batch(10, 1.0), batch(100, 7.4)]) == 135
    assert next_size(params, [batch(10, 1.0), batch(100, 7.5)]) is None


def test_batches_of_clients_that_work_at_the_same_time_are_one_from_the_first_start_to_the_last_end() -> None:
    one = TaskBatch(2, 1.0, 2.0, 5.0, {"7": 2}, [0.5, 3.0])
    other = TaskBatch(1, 1.5, 2.5, 4.0, {"8": 1}, [2.0])
    both = joined([one, other])
    assert (both.count, both.submit_s, both.run_s, both.results) == (3, 1.5, 4.0, {"7": 2, "8": 1})
    assert both.figures() == {
        "tasks": 3,
        "submit_s": 1.5,
        "run_s": 4.0,
        "submit_per_s": 2.0,
        "tasks_per_s": 0.75,
        "latency_s": {"p50": 2.0, "p90": 3.0, "p99": 3.0, "max": 3.0},
    }


def test_quantiles_are_values_that_came() -> None:
    assert quantiles([float(value) for value in range(1, 101)]) == {"p50": 50.0, "p90": 90.0, "p99": 99.0, "max": 100.0}
    assert quantiles([]) == {}


def test_results_are_counted_and_tasks_shared_evenly() -> None:
    assert counted([7, 7, "7", None]) == {"7": 2, "'7'": 1, "None": 1}
    assert [shares(10, 3), shares(2, 3)] == [[4, 3, 3], [1, 1, 0]]


@pytest.mark.parametrize(
    ("backend", "params", "message"),
    [
        ("dask", "count = 0", "count and clients must be at least 1, and target longer than 0 s"),
        ("dask", 'mode = "explicit"', 'mode = "explicit" needs batches, each of at least 1 task'),
        ("dask", "batches = [1]", 'mode = "explicit" needs batches, each of at least 1 task, and no other mode'),
        ("dask", 'mode = "explicit"\nbatches = [1, 0]', "each of at least 1 task"),
        ("dask", 'parsl_config = "/x.py"', "parsl_config is for backend parsl"),
        ("parsl", 'parsl_config = "x.py"', "parsl_config must be an absolute path"),
        ("parsl", 'parsl_config = "/x.py"\nparsl_provider = "slurm"', "leave out parsl_provider"),
        ("parsl", 'parsl_partition = "gpu"', 'parsl_partition is for parsl_provider = "slurm"'),
        ("parsl", 'parsl_config = "/x.py"\nclients = 2', "with parsl_config there is one client"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused_at_plan(backend: str, params: str, message: str) -> None:
    text = f'name = "mine"\n[[workload]]\nname = "tasks"\nbackend = "{backend}"\n[workload.params]\n{params}\n'
    with pytest.raises(UsageError) as caught:
        Suite.load(text, "mine.toml").resolve("mine.toml", reps=None, timeout_s=7.0)
    assert str(caught.value).startswith("mine.toml: tasks: ")
    assert message in str(caught.value)
