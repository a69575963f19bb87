"""One workload of a run: set up, warm up, time, check every answer, count the traffic, clean up."""

import contextlib
import dataclasses
import itertools
import math
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from gpubench.node.spec import WorkloadSpec
from gpubench.node.spec.sample_columns import Sample
from gpubench.node.workloads import dask_compat, device
from gpubench.node.workloads.base import Answer, Measurement, UnavailableError
from gpubench.node.workloads.clock import utc_now
from gpubench.node.workloads.counters import Cost
from gpubench.node.workloads.links import Link, collect, mark, summed


@dataclasses.dataclass
class Result:
    """How a workload ended: ``status`` ``ok`` or ``failed``, ``reason`` for people.

    Bytes are sums over the timed repetitions: ``least_moved_bytes`` had to move between worker processes,
    ``seen_bytes`` were seen to, in Dask's transfer logs or by the workload itself; ``links`` are the same bytes by pair
    of workers (the clock's part only), ``pairs`` the two workers of each connection of their own that carried some.
    ``floor`` is what one repetition can't do without: data lies in the same places in all of them. ``slowed_s`` are the
    seconds waited because of ``slow``; ``answered`` are the addresses of the workers that were there at the end;
    ``energy_of`` the counters of the last repetition's joules.
    The caller fails the run when ``seen_bytes < least_moved_bytes``.
    """

    status: str = "ok"
    reason: str = ""
    answer: Optional[Answer] = None
    links: List[Link] = dataclasses.field(default_factory=list)
    least_moved_bytes: int = 0
    seen_bytes: int = 0
    keys_left: int = 0
    slowed_s: float = 0.0
    floor: Optional[int] = None
    answered: List[str] = dataclasses.field(default_factory=list)
    figures: Dict[str, Any] = dataclasses.field(default_factory=dict)
    energy_of: Tuple[str, ...] = ()
    pairs: Set[Tuple[str, str]] = dataclasses.field(default_factory=set)

    @property
    def details(self) -> Dict[str, Any]:
        """Figures for the run record: the last answer's, the workload's own, the bytes, results left on workers."""
        return {
            **(self.answer.details if self.answer else {}),
            **self.figures,
            "least_moved_bytes": self.least_moved_bytes,
            "seen_bytes": self.seen_bytes,
            "keys_left": self.keys_left,
            **({"slowed_s": self.slowed_s} if self.slowed_s else {}),
            **({"energy_of": list(self.energy_of)} if self.energy_of else {}),
        }


def measure(
    measurement: Measurement,
    planned: WorkloadSpec,
    emit: Callable[[Sample], None],
    *,
    slow: float = 0.0,
    rounds: Sequence[int] = (),
    between: Optional[Callable[[], object]] = None,
) -> Result:
    """Run ``warmup`` marked and ``reps`` timed repetitions, as planned; each sample goes to ``emit`` when checked.

    ``rounds`` part the timed repetitions (default: one round of all): ``between`` is called before each further round.
    No marked repetition follows it: the first one of a further turn took as long as others (``benchmarks/README.md``).

    The first wrong answer ends the workload as ``failed``, with the figures as reason: what is wrong once isn't worth
    timing. Whatever a workload raises comes through, after its clean-up. ``slow`` is the share by which every
    repetition is made longer, see ``spec.slowness``. Nothing is left in the workers, see ``dask_compat.clean``.
    """
    result, params_id = Result(), planned.params_id
    try:
        measurement.setup()
        done = {True: 0, False: 0}
        for is_warmup in _sequence(rounds or [planned.reps], planned.warmup):
            if is_warmup is None:
                if between:
                    between()
                continue
            sample = _repeat(measurement, result, is_warmup, slow)
            which = {"workload": planned.name, "backend": planned.backend, "params_id": params_id}
            emit({**which, "rep": done[is_warmup], "warmup": is_warmup, **sample})
            done[is_warmup] += 1
            answer = result.answer
            if answer and answer.status == "wrong":
                figures = (f"{name} {value}" for name, value in answer.details.items())
                result.status, result.reason = "failed", f"wrong answer: {', '.join(figures)}"
                break
    except UnavailableError:
        measurement.teardown()
        dask_compat.drain(measurement.context.client, clean=True)
        raise
    except BaseException:
        # With a worker gone, cleaning up fails too; what counts is why the workload ended.
        with contextlib.suppress(Exception):
            measurement.teardown()
        raise
    measurement.teardown()
    if measurement.talks_past_log:
        result.pairs.update(itertools.combinations(measurement.context.workers, 2))
    result.figures = measurement.figures
    left = dask_compat.drain(measurement.context.client, clean=True)
    result.answered, result.keys_left = list(left), sum(left.values())
    return result


def _sequence(rounds: Sequence[int], warmup: int) -> Iterator[Optional[bool]]:
    """Whether each repetition is a warm-up; None before every round but the first."""
    yield from itertools.repeat(True, warmup)
    for number, timed in enumerate(rounds):
        if number:
            yield None
        yield from itertools.repeat(False, timed)


def _busy_wait(seconds: float) -> float:
    """Keep this processor busy for so long; the seconds that it took."""
    began = now = time.perf_counter()
    while now - began < seconds:
        now = time.perf_counter()
    return now - began


def _whole_bytes(nominal_bytes: Any) -> int:
    """What a user's workload gives as its bytes, as the table of samples can hold it."""
    whole = int(nominal_bytes)
    if not 0 <= whole < 2**63:
        raise ValueError(f"nominal_bytes is {nominal_bytes}: a number of bytes lies within 0 and 2^63")
    return whole


def _repeat(measurement: Measurement, result: Result, is_warmup: bool, slow: float) -> Sample:
    client = measurement.context.client
    measurement.prepare()
    device.synchronize_workers(client, measurement.context.device)  # what it left to the GPUs isn't to be timed
    if result.floor is None:
        result.floor = measurement.least_moved_bytes
    marks = mark(client) if measurement.uses_transfer_log else None
    counters = measurement.context.counters if measurement.has_cost else None
    before = counters.before() if counters else {}
    started_at = utc_now()
    wall_s, outcome = measurement.once()
    if not 0 < wall_s < math.inf:
        raise ValueError(f"a repetition took {wall_s} s by its own clock")
    if slow:
        # Behind the workload's own second reading, and counted: as if it stood before it.
        waited = _busy_wait(slow * wall_s)
        wall_s += waited
        result.slowed_s += waited
    cost = counters.since(before) if counters else Cost()
    result.energy_of = cost.energy_of
    traffic = collect(client, marks) if marks else []
    answer = result.answer = measurement.check(outcome)
    if not is_warmup:
        own = measurement.links_own
        carried = [*traffic, *(own if measurement.by_workers else ())]
        result.pairs.update((link["receiver"], link["sender"]) for link in carried)
        result.links = summed(result.links + traffic + own)
        result.seen_bytes += sum(link["bytes"] for link in traffic + own)
        result.least_moved_bytes += result.floor
    return {
        "wall_s": wall_s,
        "bytes": _whole_bytes(measurement.nominal_bytes),
        "answer": answer.status,
        "started_at": started_at,
        "cpu_s": cost.cpu_s,
        "energy_j": cost.energy_j,
        "throttle": cost.throttle,
    }
