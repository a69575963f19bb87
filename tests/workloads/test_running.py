"""Every workload on a real cluster: right answers pass, falsified ones don't, traffic is seen."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpubench.node.workloads import dask_compat, families, links
from gpubench.node.workloads.base import Answer, Measurement, WorkloadContext
from gpubench.node.workloads.message import chosen_pairs, differing_bytes
from tests.workloads.running import Answers, complete, measured_rightly, run

pytestmark = pytest.mark.integration

JOIN = {"rows_per_worker": 2000, "frac_match": 0.3, "join": "default"}
ARRAY = {"size": 250, "chunk": 100}
MESSAGE = {"size": 1000, "round_trips": 3, "pairs": "all"}
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
    ("message", MESSAGE),
    ("copy", {"size": 8000, "times": 3}),
]
NOTHING_MOVES = {"tasks", "copy"}


@pytest.mark.parametrize(("name", "params"), WORKLOADS, ids=str)
def test_a_workload_answers_rightly_and_what_it_must_move_is_seen(
    cluster: WorkloadContext, name: str, params: dict[str, Any]
) -> None:
    lazy = params.get("generate", False)
    measured_rightly(cluster, name, params, moves=name not in NOTHING_MOVES and not lazy, reps=2)


FALSIFIED: list[tuple[str, dict[str, Any], Callable[[Any], Any]]] = [
    ("transpose-sum", ARRAY, lambda total: total * (1 + 1e-8)),
    ("strided-sum", ARRAY | {"generate": False}, lambda total: total - 1.0),
    ("strided-sum", ARRAY | {"generate": True}, lambda total: total - 1.0),
    ("merge", JOIN, lambda joined: ([[joined[0][0][0] - 1, *joined[0][0][1:]], *joined[0][1:]], joined[1])),
    ("merge", JOIN, lambda joined: ([[*joined[0][0][:4], joined[0][0][4] + 1], *joined[0][1:]], joined[1])),
    ("merge", JOIN | {"set_index": True}, lambda joined: (joined[0], [[0, 9999, 1]] * len(joined[1]))),
    ("merge", JOIN | {"set_index": True}, lambda joined: (joined[0], joined[1][1:])),
    ("message", MESSAGE, lambda sides: [sides[0] | {"wrong_bytes": 1}, sides[1]]),
    ("message", MESSAGE, lambda sides: [sides[0], sides[1] | {"received_bytes": 2000}]),
    ("message", MESSAGE, lambda sides: [side | {"is_other_process": False} for side in sides]),
]


@pytest.mark.parametrize(("name", "params", "falsify"), FALSIFIED, ids=[f"{i}-{x[0]}" for i, x in enumerate(FALSIFIED)])
def test_a_falsified_answer_is_called_wrong(
    answers: Answers, name: str, params: dict[str, Any], falsify: Callable[[Any], Any]
) -> None:
    answers.called_wrong(name, params, falsify)


@pytest.mark.parametrize("kept_bytes", [0, 1 << 20])
@pytest.mark.parametrize(("name", "params"), [("transpose-sum", ARRAY), ("strided-sum", ARRAY | {"generate": False})])
def test_sums_of_arrays_are_right_and_differ_in_every_repetition_drawn_anew_or_scaled(
    cluster: WorkloadContext, monkeypatch: pytest.MonkeyPatch, name: str, params: dict[str, Any], kept_bytes: int
) -> None:
    monkeypatch.setattr("gpubench.node.workloads.base.KEPT_BYTES", kept_bytes)
    measurement = families.create(name, cluster, "dask", complete(name, params))
    found = []
    for _ in range(3):
        measurement.prepare()
        _, held = measurement.once()
        answer = measurement.check(held)
        assert answer.status == "ok"
        found.append(answer.details["answer"])
        stale = cluster.client.submit(float, found[0], pure=False)
        assert len(found) == 1 or measurement.check(stale).status == "wrong"
        del held, stale
    assert len(set(found)) == 3
    measurement.teardown()
    assert set(dask_compat.drain(cluster.client).values()) == {0}


@pytest.mark.parametrize("kept_bytes", [0, 1 << 20])
def test_a_join_has_to_move_the_same_bytes_from_frames_that_are_generated_anew_and_from_copies(
    cluster: WorkloadContext, monkeypatch: pytest.MonkeyPatch, kept_bytes: int
) -> None:
    monkeypatch.setattr("gpubench.node.workloads.base.KEPT_BYTES", kept_bytes)
    one, _ = run(families.create("merge", cluster, "dask", complete("merge", JOIN)), reps=1, warmup=0)
    three, lines = run(families.create("merge", cluster, "dask", complete("merge", JOIN)), reps=3, warmup=0)
    assert [line["answer"] for line in lines] == ["ok"] * 3
    assert three.least_moved_bytes == 3 * one.least_moved_bytes > 0
    assert three.seen_bytes >= three.least_moved_bytes
    assert one.keys_left == three.keys_left == 0


def test_messages_between_workers_are_counted_by_their_receivers_and_timed_pair_by_pair(
    cluster: WorkloadContext,
) -> None:
    result, lines = run(families.create("message", cluster, "dask", MESSAGE))
    assert result.seen_bytes == 2 * 2 * 3 * 1000
    there, back = links.rows(result.links)
    assert (there["receiver"], there["sender"]) == (back["sender"], back["receiver"]) == tuple(cluster.workers)
    assert (there["bytes"], there["count"]) == (back["bytes"], back["count"]) == (2 * 3 * 1000, 2 * 3)
    assert there["round_trip_s"] == back["round_trip_s"]
    assert 2 * there["seconds"] == pytest.approx(sum(line["wall_s"] for line in lines if not line["warmup"]))
    assert 0 < there["round_trip_s"]["min"] <= there["round_trip_s"]["median"] <= there["round_trip_s"]["max"]


@pytest.mark.parametrize("size", [1, 7, 8, 21])
@pytest.mark.parametrize("place", [0, -1])
def test_each_byte_that_differs_from_what_was_sent_is_counted(size: int, place: int) -> None:
    sent = np.arange(size, dtype="uint8")
    assert differing_bytes(np, sent.copy(), sent) == 0
    received = sent.copy()
    received[place] += 1
    assert differing_bytes(np, received, sent) == 1
    assert differing_bytes(np, sent[1:], sent) == size


def test_quantiles_are_numpys() -> None:
    values = [0.3, 0.1, 0.7, 0.2, 1.9]
    assert list(links.quantiles(values).values()) == pytest.approx(np.quantile(values, list(links.QUANTILES.values())))
    assert set(links.quantiles([0.5]).values()) == {0.5}


@pytest.mark.parametrize(
    ("which", "hosts", "pairs"),
    [
        ("all", "aabb", [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]),
        ("ring", "aabb", [(0, 1), (0, 3), (1, 2), (2, 3)]),
        ("ring", "ab", [(0, 1)]),
        ("hosts", "aabb", [(0, 1), (0, 2), (2, 3)]),
        ("hosts", "abc", [(0, 1), (0, 2), (1, 2)]),
        ("hosts", "bab", [(0, 1), (0, 2)]),
        ("hosts", "aaa", [(0, 1)]),
    ],
)
def test_the_pairs_that_play_are_chosen_by_worker_and_host(
    which: str, hosts: str, pairs: list[tuple[int, int]]
) -> None:
    assert chosen_pairs(which, hosts) == pairs


def test_a_message_workload_without_a_second_worker_says_so(cluster: WorkloadContext) -> None:
    alone = WorkloadContext(cluster.client, cluster.workers[:1], 1, "cpu", "tcp")
    with pytest.raises(ValueError, match="at least two workers"):
        run(families.create("message", alone, "dask", MESSAGE))


class Scripted(Measurement):
    """Answers as told, to see what ``measure`` makes of it."""

    nominal_bytes = 5
    least_moved_bytes = 3

    def __init__(self, context: WorkloadContext, answers: list[str]) -> None:
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


def test_the_first_wrong_answer_ends_the_workload_with_figures(cluster: WorkloadContext) -> None:
    scripted = Scripted(cluster, ["ok", "ok", "wrong", "ok"])
    result, lines = run(scripted, reps=3)
    assert result.status == "failed"
    assert result.reason == "wrong answer: rows 3, expected_rows 4"
    assert [line["answer"] for line in lines] == ["ok", "ok", "wrong"]
    assert scripted.calls == ["prepare", "once", "check"] * 3 + ["teardown"]


def test_warm_ups_are_not_in_the_byte_counts(cluster: WorkloadContext) -> None:
    result, _ = run(Scripted(cluster, ["ok"] * 4), reps=2, warmup=2)
    assert result.least_moved_bytes == 2 * 3


@pytest.mark.parametrize("odd", [2**63, -1, float("inf")])
def test_bytes_that_the_table_of_samples_cannot_hold_end_the_workload(cluster: WorkloadContext, odd: float) -> None:
    scripted = Scripted(cluster, ["ok"])
    scripted.nominal_bytes = odd  # type: ignore[misc,assignment]
    with pytest.raises((ValueError, OverflowError), match=r"bytes|integer"):
        run(scripted, reps=1)


def test_a_crash_comes_through_after_the_clean_up(cluster: WorkloadContext) -> None:
    scripted = Scripted(cluster, ["ok", "crash"])
    with pytest.raises(RuntimeError, match="worker died"):
        run(scripted)
    assert scripted.calls[-1] == "teardown"


def test_a_failing_clean_up_does_not_hide_why_the_workload_crashed(cluster: WorkloadContext) -> None:
    class Hopeless(Scripted):
        def teardown(self) -> None:
            raise OSError("no worker to talk to")

    with pytest.raises(RuntimeError, match="worker died"):
        run(Hopeless(cluster, ["crash"]))


def test_traffic_is_counted_from_the_mark_on_by_receiver_and_sender(cluster: WorkloadContext) -> None:
    client, (first, second) = cluster.client, cluster.workers
    early = client.submit(bytes, 10_000, workers=[first])
    client.submit(len, early, workers=[second]).result()
    marks = links.mark(client)
    late = client.submit(bytes, 20_000, workers=[second])
    client.submit(len, late, workers=[first]).result()
    (link,) = links.collect(client, marks)
    assert (link["receiver"], link["sender"], link["count"]) == (first, second, 1)
    assert 20_000 <= link["bytes"] < 20_100
    assert sum(one["bytes"] for one in links.summed([link, link])) == 2 * link["bytes"]


def log_lengths(dask_worker: Any) -> int:
    return len(dask_compat.incoming_log(dask_worker))


def test_a_log_holds_one_repetition_at_most_and_nothing_once_the_workers_are_cleaned(cluster: WorkloadContext) -> None:
    held: list[int] = []
    measurement = families.create("transpose-sum", cluster, "dask", ARRAY)
    result, _ = run(
        measurement, reps=8, rounds=[4, 4], between=lambda: held.extend(cluster.client.run(log_lengths).values())
    )
    assert 0 < sum(held) < sum(link["count"] for link in result.links) / 4
    assert set(cluster.client.run(log_lengths).values()) == {0}
    assert (sorted(result.answered), result.keys_left) == (cluster.workers, 0)


def test_a_result_that_somebody_keeps_is_waited_for_and_counted_where_it_lies(cluster: WorkloadContext) -> None:
    first, second = cluster.workers
    kept = cluster.client.submit(bytes, 10, workers=[first])
    kept.result()
    assert dask_compat.drain(cluster.client, timeout_s=0.05) == {first: 1, second: 0}
    kept.release()
    assert dask_compat.drain(cluster.client) == {first: 0, second: 0}


def test_a_worker_that_is_another_process_than_before_is_an_error_and_not_less_traffic(
    cluster: WorkloadContext,
) -> None:
    marks = dict.fromkeys(cluster.workers, 0)
    with pytest.raises(RuntimeError, match="restarted"):
        links.collect(cluster.client, marks)


def test_a_copy_that_lacks_one_number_is_called_wrong(cluster: WorkloadContext) -> None:
    measurement = families.create("copy", cluster, "dask", {"size": 8000, "times": 2})
    measurement.setup()
    measurement.prepare()
    _, taken = measurement.once()
    assert measurement.check(taken).status == "ok"
    assert measurement.nominal_bytes == 2 * 8000 * 2 * 2
    measurement.prepare()  # the target holds none of the numbers that are there now
    found = measurement.check(taken)
    assert (found.status, found.details["wrong_items"]) == ("wrong", 2 * 1000)
    measurement.teardown()
