"""Processes that poll, against the cores that they have."""

from typing import Any

from gpubench.node.spec.waiting import ASLEEP, crowded, crowded_hosts, polls


def process(host: str, affinity: list[int], **env: str) -> dict[str, Any]:
    return {"host": host, "affinity": affinity, "ucx": {"env": env}}


def test_only_the_binding_s_thread_that_wakes_python_lets_a_process_sleep() -> None:
    assert polls("ucx", {})
    assert polls("ucx", {**ASLEEP, "UCXPY_PROGRESS_MODE": "blocking"})
    assert polls("ucx", {"UCXPY_PROGRESS_MODE": "thread"})
    assert not polls("ucx", {**ASLEEP, "UCX_TLS": "tcp"})
    assert not polls("tcp", {})


def test_more_of_them_than_cores_is_a_line_that_says_what_mends_it() -> None:
    assert crowded(2, 2, "") == ""
    assert crowded(3, 1, " of n1") == (
        'oversubscribed: 3 processes poll while they wait, on 1 core of n1; layout.waiting = "event" lets them sleep, '
        "if every binding can"
    )


def test_each_host_is_counted_by_itself_with_all_cores_that_its_processes_may_use() -> None:
    processes = [process("n1", [0]), process("n1", [1]), process("n1", [1]), process("n2", [0, 1])]
    (line,) = crowded_hosts("ucx", processes)
    assert "3 processes poll while they wait, on 2 cores of n1" in line
    assert crowded_hosts("tcp", processes) == []
    assert crowded_hosts("ucx", [process("n1", [0], **ASLEEP)] * 9) == []
