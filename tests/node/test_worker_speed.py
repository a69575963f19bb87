"""When a worker counts as slow: against the median worker, every time it was looked at, and not for want of cores."""

import pytest

from gpubench.node import speed


def probe(*walls: float, cpu: float = 1.0) -> dict[str, dict[str, object]]:
    """Figures of one probe; ``cpu`` seconds of processor time in each fastest piece."""
    return {
        f"tcp://{number}": {"name": f"w{number}", "host": "a", "wall_s": wall, "cpu_s": cpu * min(1.0, wall)}
        for number, wall in enumerate(walls)
    }


@pytest.mark.parametrize(
    ("before", "after", "slow"),
    [
        (probe(1.0, 1.0, 1.1, 2.0), probe(1.0, 1.0, 1.1, 1.8), {"tcp://3": 1.8}),
        (probe(1.0, 2.0), probe(1.0, 2.5), {"tcp://1": 2.0}),
        (probe(1.0, 1.4), probe(1.0, 1.4), {}),
        (probe(1.0, 1.0, 3.0), probe(1.0, 3.0, 1.0), {}),
        (probe(2.0), probe(2.0), {}),
        ({}, {}, {}),
    ],
)
def test_slow_is_who_takes_half_as_long_again_as_the_median_worker_both_times(
    before: dict[str, dict[str, object]], after: dict[str, dict[str, object]], slow: dict[str, float]
) -> None:
    assert speed.slow([before, after]) == pytest.approx(slow)


def test_where_every_worker_waits_for_a_core_one_that_waits_longer_is_not_slow_but_a_stopped_one_is() -> None:
    busy = probe(2.0, 2.2, 2.4, 5.0)
    assert speed.slow([busy, busy]) == {}
    stopped = probe(2.0, 2.2, 2.4, 40.0)
    assert list(speed.slow([stopped, stopped])) == ["tcp://3"]


def test_a_slow_core_is_slow_in_processor_time_too() -> None:
    throttled = probe(1.0, 1.0, 1.7, cpu=1.7)
    for one in throttled.values():
        one["cpu_s"] = one["wall_s"]
    assert speed.slow([throttled]) == pytest.approx({"tcp://2": 1.7})
    assert speed.warnings([throttled]) == [
        "slow worker: w2 on a takes at least 1.7 times as long as the median worker, before the workloads"
    ]


def test_every_figure_of_every_worker_is_kept() -> None:
    assert speed.table([probe(1.0, 2.0), probe(3.0, 4.0)])[1] == {
        "worker": "tcp://1",
        "name": "w1",
        "host": "a",
        "wall_s": [2.0, 4.0],
        "cpu_s": [1.0, 1.0],
    }
    assert speed.table([]) == []
