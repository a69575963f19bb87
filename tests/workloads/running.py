"""How tests run a workload on a real cluster: measured as in a run, or with an answer that somebody falsified."""

from collections.abc import Callable, Mapping
from typing import Any

from gpubench.model.own_workload import OwnWorkload
from gpubench.node.spec import WorkloadSpec
from gpubench.node.spec.sample_columns import Sample
from gpubench.node.workloads import families
from gpubench.node.workloads.base import Measurement, WorkloadContext
from gpubench.node.workloads.catalogue import CATALOGUE
from gpubench.node.workloads.repetitions import Result, measure
from tests.workloads import own_files


def complete(name: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """``params``, and the catalogue's defaults for the others."""
    return {key: params.get(key, param.default) for key, param in CATALOGUE[name].params.items()}


def run(measurement: Measurement, **changes: Any) -> tuple[Result, list[Sample]]:
    """Two repetitions and a warm-up unless ``changes`` say otherwise; the result and the samples."""
    lines: list[Sample] = []
    plain = {"name": "x", "backend": "dask", "params": {}, "reps": 2, "warmup": 1, "timeout_s": 300.0}
    planned = WorkloadSpec(**{name: changes.pop(name, value) for name, value in plain.items()})
    return measure(measurement, planned, lines.append, **changes), lines


def created(
    cluster: WorkloadContext, workload: str | OwnWorkload, params: Mapping[str, Any], *, backend: str = "dask"
) -> Measurement:
    """The measurement of a workload of the catalogue, or of a packed file, with defaults for the other parameters."""
    if isinstance(workload, OwnWorkload):
        return own_files.create(workload, cluster, params, backend=backend)
    return families.create(workload, cluster, backend, complete(workload, params))


def measured_rightly(
    cluster: WorkloadContext,
    workload: str | OwnWorkload,
    params: Mapping[str, Any],
    *,
    backend: str = "dask",
    moves: bool = True,
    reps: int = 1,
) -> Result:
    """Every answer is right, every time positive, what must move was seen, and nothing stays on the workers.

    ``moves``: whether bytes have to move between the workers at all. ``reps`` follow a warm-up.
    """
    measurement = created(cluster, workload, params, backend=backend)
    result, lines = run(measurement, name=str(workload), backend=backend, reps=reps)
    assert (result.status, result.reason) == ("ok", "")
    numbers = [(0, True), *((rep, False) for rep in range(reps))]
    assert [(line["rep"], line["warmup"], line["answer"]) for line in lines] == [(*number, "ok") for number in numbers]
    assert all(line["wall_s"] > 0 for line in lines)
    assert result.seen_bytes >= result.least_moved_bytes
    assert (result.least_moved_bytes > 0) == moves
    assert result.keys_left == 0
    return result


class Answers:
    """Right answers of workloads, one workload at a time: cases that stand one after the other share the measuring."""

    def __init__(self, cluster: WorkloadContext) -> None:
        self._cluster = cluster
        self._of: tuple[str | OwnWorkload, str, Mapping[str, Any]] | None = None
        self._measurement: Measurement | None = None
        self._answer: Any = None

    def called_wrong(
        self,
        workload: str | OwnWorkload,
        params: Mapping[str, Any],
        falsify: Callable[[Any], Any],
        *,
        backend: str = "dask",
    ) -> None:
        """A right answer passes; the same answer, falsified, doesn't."""
        if self._of != (workload, backend, params):
            self.close()
            self._measurement = created(self._cluster, workload, params, backend=backend)
            self._measurement.setup()
            self._measurement.prepare()
            _, self._answer = self._measurement.once()
            assert self._measurement.check(self._answer).status == "ok"
            self._of = (workload, backend, params)
        assert self._measurement is not None
        assert self._measurement.check(falsify(self._answer)).status == "wrong"

    def close(self) -> None:
        """Free what the workload holds on the cluster."""
        self._of, self._answer, measurement = None, None, self._measurement
        self._measurement = None
        if measurement is not None:
            measurement.teardown()
