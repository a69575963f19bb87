"""Submitting clients in processes of their own: one process is started for each and told what to submit.

Processes and not threads, because what limits a client is its interpreter: one thread tops out near 1,300 tasks a
second whatever the cluster is, and further threads of the same process take turns with it. And parsl always runs in
such a process, also with one client: its threads, its logging and its working directory stay out of the run's own
client, and whatever it starts can be ended with it.

Answers travel as pickles on what was the process's standard output; what a library or a user's config prints goes to
standard error.

Batches of tasks that do nothing: how large the next one is, and what is kept of each.
"""

import contextlib
import dataclasses
import importlib
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from gpubench.node.workloads import process_reaper
from gpubench.node.workloads.base import UnavailableError

FIRST = 10
"""Tasks of the first batch where the sizes are not given: enough to have every worker wake up, whatever it is."""
CLOSE_ENOUGH = 0.75
"""Of the target: a batch that took as long ends mode `estimate`."""
LEAST_BATCHES = 2
"""The first is the warm-up."""
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


@dataclasses.dataclass
class TaskBatch:
    """One submission of ``count`` tasks.

    Args:
        count: how many were submitted.
        start: reading of the monotonic clock before the first submission, of this machine's boot.
        submitted: after the last submission.
        end: when every result had arrived.
        results: how often which result came (by its text).
        latencies: of each task, seconds from its submission until the client saw that it was done; empty where a
            client can't see that.
    """

    count: int
    start: float
    submitted: float
    end: float
    results: Dict[str, int]
    latencies: List[float]

    @property
    def submit_s(self) -> float:
        return self.submitted - self.start

    @property
    def run_s(self) -> float:
        return self.end - self.start

    def figures(self) -> Dict[str, Any]:
        """What the run record keeps of it: tasks, seconds, rates per second, latency quantiles in seconds."""
        return {
            "tasks": self.count,
            "submit_s": self.submit_s,
            "run_s": self.run_s,
            "submit_per_s": self.count / self.submit_s,
            "tasks_per_s": self.count / self.run_s,
            "latency_s": quantiles(self.latencies),
        }


def joined(parts: Sequence[TaskBatch]) -> TaskBatch:
    """The batches that several clients of one machine ran at the same time, as one."""
    results: Dict[str, int] = {}
    for part in parts:
        for result, times in part.results.items():
            results[result] = results.get(result, 0) + times
    return TaskBatch(
        count=sum(part.count for part in parts),
        start=min(part.start for part in parts),
        submitted=max(part.submitted for part in parts),
        end=max(part.end for part in parts),
        results=results,
        latencies=[latency for part in parts for latency in part.latencies],
    )


def counted(results: Sequence[Any]) -> Dict[str, int]:
    """How often which result came."""
    texts = [repr(result) for result in results]
    return {text: texts.count(text) for text in set(texts)}


def quantiles(values: Sequence[float]) -> Dict[str, float]:
    """The smallest value that at least this share of ``values`` doesn't exceed, by name; nothing of nothing."""
    ordered = sorted(values)
    return {
        name: ordered[max(0, -(-len(ordered) * round(1000 * share) // 1000) - 1)]
        for name, share in QUANTILES.items()
        if ordered
    }


def next_size(params: Mapping[str, Any], done: Sequence[TaskBatch]) -> Optional[int]:
    """How many tasks the next batch has, None when the last one was the last.

    As parsl-perf (``parsl/benchmark/perf.py``): `estimate` takes as many as the last rate gives in the target time,
    until a batch took three quarters of it; `exponential` doubles until one took all of it; both at least twice.
    `explicit` takes the sizes that it is given. `fixed`, which parsl-perf doesn't have, is one batch.
    """
    mode, target = params["mode"], float(params["target"])
    if mode in ("fixed", "explicit"):
        sizes = [int(size) for size in ([params["count"]] if mode == "fixed" else params["batches"])]
        return sizes[len(done)] if len(done) < len(sizes) else None
    if not done:
        return FIRST
    last = done[-1]
    if len(done) >= LEAST_BATCHES and last.run_s >= target * (CLOSE_ENOUGH if mode == "estimate" else 1.0):
        return None
    return max(1, int(target * last.count / last.run_s)) if mode == "estimate" else 2 * last.count


def shares(count: int, clients: int) -> List[int]:
    """``count`` over as many clients, as evenly as whole numbers allow."""
    return [count // clients + (index < count % clients) for index in range(clients)]


MARK = "GPUBENCH_TASK_CLIENTS"
CLOSE_S = 20.0


class TaskClientError(Exception):
    """A submitting process failed or ended; the message is its own where it had one."""


class Clients:
    """Submitting processes that work at the same time, as one submitter.

    Args:
        kind: ``module:class`` in ``gpubench.node.workloads``, built in each process from the facts meant for it; it has
            ``batch``, ``close`` and ``about`` (plain data for the run record).
        facts: plain data, one for each process.

    Raises:
        UnavailableError: one can't be built with what there is.
        TaskClientError: one failed.
    """

    def __init__(self, kind: str, facts: Sequence[Mapping[str, Any]]) -> None:
        self._mark = uuid.uuid4().hex
        self._folder = Path(tempfile.mkdtemp(prefix="gpubench-clients-"))
        self._guard = process_reaper.guard(MARK, self._mark)
        self._processes: List[subprocess.Popen[bytes]] = []
        self.about: Dict[str, Any] = {}
        try:
            for index, own in enumerate(facts):
                self._processes.append(self._start(kind, own, self._folder / str(index)))
            for process in self._processes:
                self.about = _answer(process)
        except BaseException:
            self._end()
            raise

    def batch(self, count: int) -> TaskBatch:
        """Every client submits its share of ``count`` tasks at once."""
        wanted = [
            (process, size) for process, size in zip(self._processes, shares(count, len(self._processes))) if size
        ]
        for process, size in wanted:
            _tell(process, size)
        return joined([_answer(process) for process, _ in wanted])

    def close(self) -> None:
        """Let the processes clean up, then end what is left of them and of what they started."""
        try:
            for process in self._processes:
                with contextlib.suppress(OSError):
                    assert process.stdin is not None
                    process.stdin.close()
            for process in self._processes:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(CLOSE_S)
        finally:
            self._end()

    def _start(self, kind: str, facts: Mapping[str, Any], folder: Path) -> "subprocess.Popen[bytes]":
        folder.mkdir()
        env = {**os.environ, MARK: self._mark}
        # setproctitle, which parsl uses, writes over the environment that the mark is found in, unless told not to.
        env["SPT_NOENV"] = "1"
        env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env.get("PATH", os.defpath)])
        pipes: Dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        process = process_reaper.start(__name__, kind, env=env, cwd=str(folder), **pipes)
        _tell(process, dict(facts))
        return process

    def _end(self) -> None:
        process_reaper.end_marked(MARK, self._mark.__eq__)
        for process in [*self._processes, self._guard]:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            process.wait()
        shutil.rmtree(str(self._folder), ignore_errors=True)


def _tell(process: "subprocess.Popen[bytes]", what: Any) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(what).encode("utf-8") + b"\n")
        process.stdin.flush()
    except BrokenPipeError:
        raise TaskClientError("a submitting client is gone") from None


def _answer(process: "subprocess.Popen[bytes]") -> Any:
    assert process.stdout is not None
    try:
        kind, answer = pickle.load(process.stdout)  # noqa: S301 - from our own process
    except EOFError:
        raise TaskClientError(f"a submitting client ended with exit code {process.wait()}") from None
    if kind == "unavailable":
        raise UnavailableError(answer)
    if kind == "failed":
        raise TaskClientError(answer)
    return answer


def main(kind: str) -> None:
    """A submitting process: facts first, then a number of tasks per line; the end of the input is the end."""
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)

        def say(word: str, answer: Any) -> None:
            pickle.dump((word, answer), answers)
            answers.flush()

        try:
            _serve(kind, say)
        except UnavailableError as error:
            say("unavailable", str(error))
        except Exception as error:  # noqa: BLE001 - whatever the library raises is the answer, with its words
            say("failed", "{}: {}".format(type(error).__name__, " ".join(str(error).split())[:300]))


def _serve(kind: str, say: Any) -> None:
    module, _, name = kind.partition(":")
    facts = json.loads(sys.stdin.readline())
    submitter = getattr(importlib.import_module("gpubench.node.workloads." + module), name)(facts)
    try:
        say("ready", submitter.about)
        for line in sys.stdin:
            say("batch", submitter.batch(json.loads(line)))
    finally:
        submitter.close()
