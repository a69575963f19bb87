"""How tests run a workload on a real cluster: measured as in a run, or with an answer that somebody falsified."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpubench.spec import SampleLine
from gpubench.workloads import families
from gpubench.workloads.base import Context, Measurement
from gpubench.workloads.catalogue import CATALOGUE
from gpubench.workloads.measure import Result, measure


def complete(name: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """``params``, and the catalogue's defaults for the others."""
    return {key: params.get(key, param.default) for key, param in CATALOGUE[name].params.items()}


def run(measurement: Measurement, **changes: Any) -> tuple[Result, list[SampleLine]]:
    """Two repetitions and a warm-up unless ``changes`` say otherwise; the result and the samples."""
    lines: list[SampleLine] = []
    facts = {"name": "x", "backend": "dask", "params_id": "0", "reps": 2, "warmup": 1, "emit": lines.append} | changes
    return measure(measurement, **facts), lines


def measured_rightly(
    cluster: Context, name: str, params: Mapping[str, Any], *, backend: str = "dask", moves: bool = True
) -> Result:
    """Every answer is right, every time positive, what must move was seen, and nothing stays on the workers.

    ``moves``: whether bytes have to move between the workers at all.
    """
    result, lines = run(families.create(name, cluster, backend, complete(name, params)), name=name, backend=backend)
    assert (result.status, result.reason) == ("ok", "")
    assert [(line.rep, line.warmup, line.answer) for line in lines] == [
        (0, True, "ok"),
        (0, False, "ok"),
        (1, False, "ok"),
    ]
    assert all(line.wall_s > 0 for line in lines)
    assert result.seen_bytes >= result.least_moved_bytes
    assert (result.least_moved_bytes > 0) == moves
    assert result.keys_left == 0
    return result


def called_wrong(
    cluster: Context, name: str, params: Mapping[str, Any], falsify: Callable[[Any], Any], *, backend: str = "dask"
) -> None:
    """A right answer passes; the same answer, falsified, doesn't."""
    measurement = families.create(name, cluster, backend, complete(name, params))
    try:
        measurement.setup()
        measurement.prepare()
        _, answer = measurement.once()
        assert measurement.check(answer).status == "ok"
        assert measurement.check(falsify(answer)).status == "wrong"
    finally:
        measurement.teardown()
