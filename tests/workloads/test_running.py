"""Every workload on a real cluster: right answers pass, falsified ones don't, traffic is seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpubench.workloads import families, links
from gpubench.workloads.base import Answer, Context, Measurement
from tests.workloads.running import called_wrong, measured_rightly, run

pytestmark = pytest.mark.integration

JOIN = {"rows_per_worker": 2000, "frac_match": 0.3, "join": "default"}
ARRAY = {"size": 250, "chunk": 100}
WORKLOADS: list[tuple[str, dict[str, Any]]] = [
    ("merge", JOIN),
    ("merge", JOIN | {"join": "shuffle"}),
    ("merge", JOIN | {"join": "broadcast"}),
    ("merge", JOIN | {"base_chunks": 5, "other_chunks": 2}),
    ("merge", JOIN | {"base_chunks": 2, "other_chunks": 3, "shuffle": False}),
    ("merge", JOIN | {"set_index": True}),
    ("transpose-sum", ARRAY),
    ("strided-sum", ARRAY | {"generate": False}),
    ("strided-sum", ARRAY | {"generate": True}),
    ("tasks", {"count": 10}),
    ("message", {"size": 1000, "round_trips": 3}),
]
NOTHING_MOVES = {"tasks"}


@pytest.mark.parametrize(("name", "params"), WORKLOADS, ids=str)
def test_a_workload_answers_rightly_and_what_it_must_move_is_seen(
    cluster: Context, name: str, params: dict[str, Any]
) -> None:
    lazy = params.get("generate", False)
    measured_rightly(cluster, name, params, moves=name not in NOTHING_MOVES and not lazy)


FALSIFIED: list[tuple[str, dict[str, Any], Callable[[Any], Any]]] = [
    ("transpose-sum", ARRAY, lambda total: total * (1 + 1e-8)),
    ("strided-sum", ARRAY | {"generate": False}, lambda total: total - 1.0),
    ("strided-sum", ARRAY | {"generate": True}, lambda total: total - 1.0),
    ("tasks", {"count": 10}, lambda results: results[1:]),
    ("tasks", {"count": 10}, lambda results: [*results[1:], 8]),
    ("merge", JOIN, lambda joined: ([[joined[0][0][0] - 1, *joined[0][0][1:]], *joined[0][1:]], joined[1])),
    ("merge", JOIN, lambda joined: ([[*joined[0][0][:4], joined[0][0][4] + 1], *joined[0][1:]], joined[1])),
    ("merge", JOIN | {"set_index": True}, lambda joined: (joined[0], [[0, 9999, 1]] * len(joined[1]))),
    ("merge", JOIN | {"set_index": True}, lambda joined: (joined[0], joined[1][1:])),
    ("message", {"size": 1000, "round_trips": 3}, lambda sides: [sides[0] | {"wrong_bytes": 1}, sides[1]]),
    ("message", {"size": 1000, "round_trips": 3}, lambda sides: [sides[0], sides[1] | {"received_bytes": 2000}]),
    ("message", {"size": 1000, "round_trips": 3}, lambda sides: [side | {"is_other_process": False} for side in sides]),
]


@pytest.mark.parametrize(("name", "params", "falsify"), FALSIFIED, ids=[f"{i}-{x[0]}" for i, x in enumerate(FALSIFIED)])
def test_a_falsified_answer_is_called_wrong(
    cluster: Context, name: str, params: dict[str, Any], falsify: Callable[[Any], Any]
) -> None:
    called_wrong(cluster, name, params, falsify)


def test_a_transpose_moves_the_same_bytes_in_every_repetition(cluster: Context) -> None:
    one, _ = run(families.create("transpose-sum", cluster, "dask", ARRAY), reps=1)
    three, _ = run(families.create("transpose-sum", cluster, "dask", ARRAY), reps=3)
    assert three.least_moved_bytes == 3 * one.least_moved_bytes > 0


def test_messages_between_workers_are_counted_by_their_receivers(cluster: Context) -> None:
    result, _ = run(families.create("message", cluster, "dask", {"size": 1000, "round_trips": 3}))
    assert result.links == []
    assert result.seen_bytes == 2 * 2 * 3 * 1000


def test_a_message_workload_without_a_second_worker_says_so(cluster: Context) -> None:
    alone = Context(cluster.client, cluster.workers[:1], 1, "cpu", "tcp")
    with pytest.raises(ValueError, match="at least two workers"):
        run(families.create("message", alone, "dask", {"size": 1000, "round_trips": 3}))


class Scripted(Measurement):
    """Answers as told, to see what ``measure`` makes of it."""

    nominal_bytes = 5
    least_moved_bytes = 3

    def __init__(self, context: Context, answers: list[str]) -> None:
        super().__init__(context, {})
        self.answers = answers
        self.calls: list[str] = []

    def prepare(self) -> None:
        self.calls.append("prepare")

    def once(self) -> tuple[float, str]:
        self.calls.append("once")
        if self.answers[0] == "crash":
            raise RuntimeError("worker died")
        return 0.5, self.answers.pop(0)

    def check(self, answer: str) -> Answer:
        self.calls.append("check")
        return Answer(answer, {"rows": 3, "expected_rows": 4})

    def teardown(self) -> None:
        self.calls.append("teardown")


def test_the_first_wrong_answer_ends_the_workload_with_figures(cluster: Context) -> None:
    scripted = Scripted(cluster, ["ok", "ok", "wrong", "ok"])
    result, lines = run(scripted, reps=3)
    assert result.status == "failed"
    assert result.reason == "wrong answer: rows 3, expected_rows 4"
    assert [line.answer for line in lines] == ["ok", "ok", "wrong"]
    assert scripted.calls == ["prepare", "once", "check"] * 3 + ["teardown"]


def test_warm_ups_are_not_in_the_byte_counts(cluster: Context) -> None:
    result, _ = run(Scripted(cluster, ["ok"] * 4), reps=2, warmup=2)
    assert result.least_moved_bytes == 2 * 3


def test_a_crash_comes_through_after_the_clean_up(cluster: Context) -> None:
    scripted = Scripted(cluster, ["ok", "crash"])
    with pytest.raises(RuntimeError, match="worker died"):
        run(scripted)
    assert scripted.calls[-1] == "teardown"


def test_a_failing_clean_up_does_not_hide_why_the_workload_crashed(cluster: Context) -> None:
    class Hopeless(Scripted):
        def teardown(self) -> None:
            raise OSError("no worker to talk to")

    with pytest.raises(RuntimeError, match="worker died"):
        run(Hopeless(cluster, ["crash"]))


def test_traffic_is_counted_from_the_mark_on_by_receiver_and_sender(cluster: Context) -> None:
    client, (first, second) = cluster.client, cluster.workers
    early = client.submit(bytes, 10_000, workers=[first])
    client.submit(len, early, workers=[second]).result()
    marks = links.mark(client)
    late = client.submit(bytes, 20_000, workers=[second])
    client.submit(len, late, workers=[first]).result()
    (link,) = links.collect(client, marks)
    assert (link["receiver"], link["sender"], link["count"]) == (first, second, 1)
    assert 20_000 <= link["bytes"] < 20_100
    assert links.total_bytes(links.summed([link, link])) == 2 * link["bytes"]


def test_a_log_that_shrank_is_an_error_and_not_less_traffic(cluster: Context) -> None:
    marks = dict.fromkeys(cluster.workers, 10**6)
    with pytest.raises(RuntimeError, match="restarted"):
        links.collect(cluster.client, marks)
