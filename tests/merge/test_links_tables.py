"""Links of many runs, put together by worker."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from campaign_builder import begin, finish, make_plan

from gpubench.report.links import links_section
from gpubench.report.sections import text_lines
from gpubench.results.merge.links import LinkTable, link_tables
from gpubench.store.accounting import account
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import read_links, read_provenance

PORTS = {"worker-0-0": 1, "worker-0-1": 2, "worker-1-0": 3, "worker-1-1": 4}
HOSTS = {name: f"n{name[7]}" for name in PORTS}


def with_links(directory: Path) -> Campaign:
    """Four workers on two hosts, other ports in every run, 1 GB/s inside and 200 MB/s between the hosts."""
    campaign = begin(directory, make_plan(blocks=3))
    finish(campaign)
    message = campaign.plan.workloads[1].params_id
    for number, one in enumerate(account(campaign).outcomes):
        assert one.directory is not None
        address = {name: f"tcp://10.0.0.{HOSTS[name][1]}:{4000 + 10 * number + port}" for name, port in PORTS.items()}
        provenance = dict(read_provenance(one.directory))
        provenance["processes"] = [
            {"role": "worker", "name": name, "host": HOSTS[name], "address": address[name]} for name in PORTS
        ]
        (one.directory / "provenance.json").write_text(json.dumps(provenance))
        rows = [
            row(address[sender], address[receiver], 1.0 if HOSTS[sender] == HOSTS[receiver] else 5.0, message)
            for sender in PORTS
            for receiver in PORTS
            if sender != receiver
        ]
        (one.directory / "links.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    return campaign


def row(sender: str, receiver: str, seconds: float, params_id: str) -> dict[str, Any]:
    moved = {"bytes": 10**9, "count": 3, "seconds": seconds}
    return {"receiver": receiver, "sender": sender, **moved, "workload": "message", "params_id": params_id}


def tables(campaign: Campaign) -> list[LinkTable]:
    return link_tables(campaign.plan, account(campaign).outcomes)


def test_a_worker_is_the_same_one_in_every_run_whatever_its_port(tmp_path: Path) -> None:
    found = tables(with_links(tmp_path / "c"))
    assert [(one.workload.name, one.variant, one.runs) for one in found] == [
        ("message", "1.17.0", 3),
        ("message", "1.19.0", 3),
    ]
    table = found[0]
    assert table.nodes == {"n0/0": "n0", "n0/1": "n0", "n1/0": "n1", "n1/1": "n1"}
    assert len(table.links) == 12
    by_pair = {(link.sender, link.receiver): link for link in table.links}
    assert (by_pair["n0/0", "n0/1"].group, by_pair["n0/0", "n0/1"].rates) == ("same node", (1e9,) * 3)
    assert (by_pair["n0/0", "n1/1"].group, by_pair["n0/0", "n1/1"].rates) == ("two nodes", (2e8,) * 3)
    assert table.bytes["n0/0", "n1/1"] == 10**9


def test_classes_and_the_matrix_are_shown(tmp_path: Path) -> None:
    lines = list(text_lines(links_section("c", tables(with_links(tmp_path / "c")))))
    assert lines[0] == "message, 1.17.0, 1 x 2 workers, 3 runs"
    assert lines[1].startswith("  same node: 4 links, median 1 GB/s (1 GB/s to 1 GB/s); too few")
    assert lines[2].startswith("  two nodes: 8 links, median 200 MB/s")
    assert lines[4].split() == ["n0/0", "-", "1", "GB/s", "200", "MB/s", "200", "MB/s"]
    plain = links_section("c", tables(with_links(tmp_path / "d"))).data
    assert (plain["schema"], len(plain["tables"][0]["links"])) == ("gpubench/links/1", 12)


def test_the_matrix_shows_the_medians_that_its_classes_are_judged_by(tmp_path: Path) -> None:
    table = tables(with_links(tmp_path / "c"))[0]
    links = [dataclasses.replace(link, rates=(1e6, 3e6)) for link in table.links if link.sender == "n0/0"]
    _, inside, *_, matrix, _, _, _ = text_lines(links_section("c", [dataclasses.replace(table, links=links)]))
    assert inside.startswith("  same node: 1 link, median 2 MB/s")
    assert matrix.split() == ["n0/0", "-", *["2", "MB/s"] * 3]


def test_damaged_lines_and_addresses_that_nobody_knows_are_left_out(tmp_path: Path) -> None:
    campaign = with_links(tmp_path / "c")
    first = account(campaign).outcomes[0].directory
    assert first is not None
    file = first / "links.jsonl"
    lost = json.dumps(row("tcp://10.0.0.9:1", "tcp://10.0.0.9:2", 1.0, campaign.plan.workloads[1].params_id))
    wrong = [json.dumps(json.loads(lost) | {name: None}) for name in ("bytes", "count", "seconds")]
    file.write_text("\n".join([file.read_text() + '{"receiver": "x"}', lost, *wrong, '{"receiver": "tcp:']))
    assert len(read_links(first)) == 13
    assert all(len(one.links) == 12 for one in tables(campaign))
    assert tables(begin(tmp_path / "empty")) == []


def test_a_transfer_that_took_no_time_moved_bytes_and_has_no_rate(tmp_path: Path) -> None:
    campaign = with_links(tmp_path / "c")
    first = account(campaign).outcomes[0].directory
    assert first is not None
    lines = [json.loads(line) for line in (first / "links.jsonl").read_text().splitlines()]
    (first / "links.jsonl").write_text("".join(json.dumps(one | {"seconds": 0}) + "\n" for one in lines))
    changed, *_ = tables(campaign)
    assert {len(link.rates) for link in changed.links} == {2}
    assert changed.bytes["n0/0", "n1/1"] == 10**9


def test_links_between_workers_that_nobody_names_make_no_table(tmp_path: Path) -> None:
    campaign = with_links(tmp_path / "campaign")
    for one in account(campaign).outcomes:
        assert one.directory is not None
        (one.directory / "provenance.json").unlink()
    assert tables(campaign) == []
