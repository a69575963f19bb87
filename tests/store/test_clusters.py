"""A standing cluster's directory: what is written when, what is left, and which cluster is meant."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpubench.clusters import jobs, resize
from gpubench.errors import DataError, IncompleteError, SchedulerError, UsageError
from gpubench.model.cluster import ClusterRecord
from gpubench.model.variant import Variant
from gpubench.node.spec.cluster import CLUSTER_STATE, ClusterState
from gpubench.schedulers import JobState
from gpubench.store.clusters import Cluster, find_cluster
from tests.plan.requests_by_hand import image, site


def record(outputs: Path, name: str = "mine") -> ClusterRecord:
    return ClusterRecord(
        name=name,
        identity="0a1b2c3d",
        directory=str(outputs / "clusters" / name),
        created_at="2025-11-20T14:00:00+00:00",
        gpubench="0.1",
        site=site(),
        variant=Variant(label="new", ucx="1.22.0"),
        image=image("1.22.0"),
        protocol="tcp",
        memory_limit=0,
        limit_s=300.0,
    )


def begin(outputs: Path, name: str = "mine", *, standing: bool = True) -> Cluster:
    cluster = Cluster.begin(record(outputs, name))
    if standing:
        (cluster.directory / "token").write_text("secret")
    return cluster


def tell(cluster: Cluster, *nodes: tuple[str, str]) -> None:
    """What rank 0 writes, of (job, state) of each node."""
    said = [
        {"rank": rank, "job": job, "host": "h", "planned": 1, "connected": 0, "state": state}
        for rank, (job, state) in enumerate(nodes)
    ]
    state = ClusterState(CLUSTER_STATE, "mine", "ready", "2025-11-20", "2025-11-20", nodes=said)
    (cluster.directory / "state.json").write_text(state.dump())


def test_a_new_cluster_is_read_back_from_a_directory_that_only_its_user_may_enter(tmp_path: Path) -> None:
    begun = begin(tmp_path, standing=False)
    again = Cluster.open(tmp_path / "clusters" / "mine")
    assert (again.record, again.jobs, again.state(), again.standing) == (begun.record, [], None, False)
    assert stat.S_IMODE(begun.directory.stat().st_mode) == 0o700
    assert sorted(path.name for path in begun.directory.iterdir() if path.is_dir()) == ["jobs.d", "requests"]


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    begin(tmp_path)
    with pytest.raises(UsageError, match=r"there is a cluster mine in .*choose another --name"):
        begin(tmp_path)


def test_jobs_are_numbered_and_ranks_counted_through_all_of_them(tmp_path: Path) -> None:
    cluster = begin(tmp_path)
    added = [cluster.add_job(nodes, 60.0 * nodes) for nodes in (2, 3, 1)]
    assert cluster.jobs == added
    assert [(job.job, job.first_rank, job.limit_s) for job in added] == [
        ("j001-n2", 0, 120.0),
        ("j002-n3", 2, 180.0),
        ("j003-n1", 5, 60.0),
    ]


def test_of_jobs_that_are_added_at_once_each_gets_ranks_of_its_own(tmp_path: Path) -> None:
    cluster = begin(tmp_path)
    with ThreadPoolExecutor(6) as pool:
        added = list(pool.map(lambda _: cluster.add_job(2, 60.0), range(6)))
    assert sorted(job.first_rank for job in added) == [0, 2, 4, 6, 8, 10]


def test_a_job_is_retired_when_it_was_given_back_or_all_its_nodes_took_leave(tmp_path: Path) -> None:
    cluster = begin(tmp_path)
    first, second = cluster.add_job(1, 60.0), cluster.add_job(2, 60.0)

    def retired() -> list[bool]:
        return [cluster.retired(job, cluster.state()) for job in (first, second)]

    assert (retired(), cluster.planned) == ([False, False], 6)
    tell(cluster, (first.job, "joined"), (second.job, "retired"))
    assert (retired(), cluster.planned) == ([False, False], 6), "one of its two nodes hasn't come yet"
    tell(cluster, (first.job, "joined"), (second.job, "retired"), (second.job, "gone"))
    assert retired() == [False, False]
    tell(cluster, (first.job, "joined"), (second.job, "retired"), (second.job, "retired"))
    assert (retired(), cluster.planned) == ([False, True], 2)
    (cluster.directory / "state.json").unlink()
    cluster.job_dir(second).mkdir(parents=True)
    cluster.retire(second)
    assert (retired(), cluster.planned) == ([False, True], 2)


def test_the_workers_of_the_job_with_the_scheduler_are_always_planned(tmp_path: Path) -> None:
    cluster = begin(tmp_path)
    leader = cluster.add_job(1, 60.0)
    tell(cluster, (leader.job, "retired"))
    assert cluster.planned == 2


def test_a_state_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    cluster = begin(tmp_path)
    (cluster.directory / "state.json").write_text("{")
    with pytest.raises(DataError, match=r"mine/state\.json: "):
        cluster.state()


def test_taking_a_cluster_down_removes_what_lets_anybody_join_and_keeps_its_history(tmp_path: Path) -> None:
    cluster = begin(tmp_path)
    job = cluster.add_job(1, 60.0)
    (cluster.directory / "scheduler.json").write_text("{}")
    (cluster.directory / ".rendezvous-0a1b2c3d").write_text("")
    (cluster.directory / "tls").mkdir()
    (cluster.directory / "tls" / "client.key").write_text("key")
    cluster.take_down()
    cluster.take_down()  # a second stop finds nothing
    assert sorted(path.name for path in cluster.directory.iterdir()) == ["cluster.json", "jobs.d", "requests"]
    assert (cluster.standing, cluster.jobs) == (False, [job])


def test_a_cluster_that_never_got_a_job_is_forgotten_whole(tmp_path: Path) -> None:
    cluster = begin(tmp_path)
    cluster.forget()
    cluster.forget()
    assert not cluster.directory.exists()


def test_the_only_cluster_that_stands_is_meant_unless_one_is_named(tmp_path: Path) -> None:
    stopped, standing = begin(tmp_path, "old", standing=False), begin(tmp_path, "new")
    assert find_cluster(tmp_path, None).record == standing.record
    assert find_cluster(tmp_path, "old").record == stopped.record
    begin(tmp_path, "other")
    with pytest.raises(UsageError, match=r"2 clusters are running in .*: new, other; name one$"):
        find_cluster(tmp_path, None)


def test_where_no_cluster_stands_the_way_to_one_is_said(tmp_path: Path) -> None:
    begin(tmp_path, "old", standing=False)
    with pytest.raises(UsageError, match=r"no cluster is running in .*; gpubench cluster start, or --outputs"):
        find_cluster(tmp_path, None)
    with pytest.raises(UsageError, match=r"there is no cluster in .*nobodys"):
        find_cluster(tmp_path, "nobodys")


def test_a_job_that_was_refused_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise SchedulerError("no such partition")

    cluster = begin(tmp_path)
    cluster.add_job(1, 300.0)
    tell(cluster, ("j001-n1", "joined"))
    planned = cluster.planned
    monkeypatch.setattr(resize, "_require_ready", lambda _cluster: None)
    monkeypatch.setattr(resize, "submit_job", refused)
    with pytest.raises(SchedulerError, match="no such partition"):
        resize.grow(cluster, 2, None, 0.0)
    assert cluster.planned == planned


def test_nodes_that_stay_are_not_given_back_and_an_earlier_answer_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = begin(tmp_path)
    cluster.add_job(1, 60.0)
    second = cluster.add_job(2, 60.0)
    monkeypatch.setattr(resize.secrets, "token_hex", lambda _: "now")
    monkeypatch.setattr(jobs, "job_state", lambda *_: JobState("running"))

    def answer(*requests: str) -> None:
        said = [
            {"rank": 1 + number, "job": second.job, "connected": 1, "state": "joined", "request": request}
            for number, request in enumerate(requests)
        ]
        state = ClusterState(CLUSTER_STATE, "mine", "ready", "", "", nodes=said, events=[{"what": "it can't leave"}])
        (cluster.directory / "state.json").write_text(state.dump())

    answer("now", "before")
    with pytest.raises(IncompleteError, match=r"^not all nodes have left yet; gpubench cluster status mine$"):
        resize._leave(cluster, [second], 0.0)
    answer("now", "now")
    with pytest.raises(IncompleteError, match=r"^it can't leave; 2 nodes of 2 not given back; the other"):
        resize._leave(cluster, [second], 0.0)
    assert list((cluster.directory / "requests").iterdir()) == []
