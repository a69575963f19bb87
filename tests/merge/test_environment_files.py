"""The second process that reads ``provenance.json`` files: the same answer with it, without it, and if it fails."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from campaign_builder import begin, finish, make_plan

from gpubench.cli.results.judge import judge_campaign
from gpubench.merge import environment_files
from gpubench.merge.environment_files import read_beside
from gpubench.spec.records import PROVENANCE, PROVENANCE_FILE
from gpubench.store.campaign import Campaign

SUITE = [("message", {"size": 1024}, 4, 60e-6)]


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """Runs whose nodes have one of two kernels, one without a file, and one whose file is damaged."""
    campaign = begin(tmp_path / "campaign", make_plan(blocks=5, suite=SUITE))
    finish(campaign)
    for at, path in enumerate(sorted(campaign.runs_dir.iterdir())):
        node = {
            "host": "n0",
            "kernel": f"6.{at % 2}",
            "environment": {"HOME": str(path)},
            "load": [{"load1": 0.5 * at}],
        }
        (path / PROVENANCE_FILE).write_text(json.dumps({"schema": PROVENANCE, "processes": [], "nodes": [node]}))
    first, second, *_ = sorted(campaign.runs_dir.iterdir())
    (first / PROVENANCE_FILE).unlink()
    (second / PROVENANCE_FILE).write_text('{"nodes": [1]}')
    return campaign


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment_files, "MANY", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {0, 1})


def found(campaign: Campaign) -> tuple[object, ...]:
    judged = judge_campaign(campaign)
    return judged.changes, judged.verdicts, [one.oversubscribed for one in judged.comparisons]


@pytest.mark.usefixtures("many")
def test_what_a_second_process_reads_is_what_this_one_would_read(campaign: Campaign, tmp_path: Path) -> None:
    with read_beside(campaign.runs_dir, files=10) as result:
        read = result()
    names = [path.name for path in sorted(campaign.runs_dir.iterdir())]
    assert sorted(read) == [names[0], *names[2:]]  # of the one without a file there is nothing to compare
    assert read[names[2]][1] is read[names[4]][1]
    assert read[names[2]][1] == {"processes": [], "nodes": [{"host": "n0", "kernel": "6.0", "environment": {}}]}


def test_verdicts_and_changes_are_the_same_with_and_without_it(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    alone = found(campaign)
    request.getfixturevalue("many")
    started: list[object] = []
    popen = subprocess.Popen

    def noted(words: list[str], **more: object) -> object:
        started.append(words)
        return popen(words, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "Popen", noted)
    assert found(campaign) == alone
    assert len(started) == 1


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("words", [["false"], ["echo", '{"parts": [], "ru'], ["echo", "[]"], ["/no/such/program"]])
def test_one_that_fails_costs_only_time(campaign: Campaign, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    good = found(campaign)
    popen: Callable[..., object] = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda _words, **more: popen(words, **more))
    assert found(campaign) == good


@pytest.mark.usefixtures("many")
def test_it_ends_with_the_command_that_started_it(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    processes: list[subprocess.Popen[bytes]] = []
    popen: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen

    def sleeping(_words: object, **more: object) -> subprocess.Popen[bytes]:
        processes.append(popen(["sleep", "1000"], **more))
        return processes[0]

    monkeypatch.setattr(subprocess, "Popen", sleeping)
    with pytest.raises(KeyboardInterrupt), read_beside(campaign.runs_dir, files=10):
        raise KeyboardInterrupt
    assert processes[0].returncode == -9
