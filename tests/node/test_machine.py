import json
import os
import time
from pathlib import Path

import pytest

from gpubench.node.machine import LoadSampler, facts, interface_address, interfaces
from gpubench.node.process_facts import describe


def test_the_facts_of_this_machine_are_true_and_fit_into_json() -> None:
    found = facts()
    assert found == json.loads(json.dumps(found))
    assert found["host"] == os.uname().nodename
    assert found["kernel"] == os.uname().release
    assert found["cores"] == os.cpu_count()
    total = Path("/proc/meminfo").read_text(encoding="ascii").split()[1]
    assert found["memory"] == pytest.approx(int(total) * 1024, rel=0.01)
    assert "lo" in found["network"]
    assert set(found["network"]["lo"]) == {"mtu", "speed"}


def test_bridges_and_the_ends_of_other_peoples_containers_are_no_facts_of_a_node(tmp_path: Path) -> None:
    # As sysfs has them: a NIC, a NIC in a bond, an interface of our own container, a bridge, a container's end on it.
    for name, has in {
        "ib0": ["device"],
        "eth1": ["device", "master"],
        "eth0": [],
        "my0": ["bridge"],
        "p7": ["master"],
    }.items():
        for part in ("", *has):
            (tmp_path / name / part).mkdir(exist_ok=True)
        (tmp_path / name / "mtu").write_text("1500\n")
    assert interfaces(str(tmp_path)) == {name: {"speed": "", "mtu": "1500"} for name in ("eth0", "eth1", "ib0")}


def test_load_and_steal_are_shares_and_are_sampled_when_it_is_time() -> None:
    sampler = LoadSampler(every_s=0.0)
    deadline = time.monotonic() + 60
    # The kernel counts in ticks of 10 ms; this loop itself is what keeps a CPU busy.
    while len(sampler.samples) < 3 or not any(sample["busy"] > 0 for sample in sampler.samples):
        assert time.monotonic() < deadline
        sampler.tick()
    for sample in sampler.samples:
        assert set(sample) == {"t", "load1", "busy", "steal"}
        assert 0.0 <= sample["busy"] <= 100.0
        assert 0.0 <= sample["steal"] <= 100.0
        assert sample["load1"] >= 0.0
    assert sampler.samples[0]["t"] <= sampler.samples[-1]["t"]
    seldom = LoadSampler(every_s=1e9)
    seldom.tick()
    assert seldom.samples == []


def test_addresses_of_interfaces() -> None:
    assert interface_address("lo") == "127.0.0.1"
    with pytest.raises(OSError, match=r"^interface nic7 has no IPv4 address here \(there is: .*\blo\b.*\)$"):
        interface_address("nic7")


def test_a_process_describes_itself_and_says_when_it_is_no_archive() -> None:
    found = describe("client")
    assert (found["role"], found["pid"], found["host"]) == ("client", os.getpid(), os.uname().nodename)
    assert found["affinity"] == sorted(os.sched_getaffinity(0))
    assert found["node_half"].startswith("not from an archive: ")
    assert found == json.loads(json.dumps(found))
