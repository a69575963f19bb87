"""The job script under a real bash. The image's `python` is a script of ours that writes down how it was called."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from gpubench import resources
from gpubench.model.plan import Plan
from tests.cli.campaigns import until
from tests.plan.requests_by_hand import image, plan, site
from tests.rendering import render_jobs

# What a call does is in a file `do/<variant>`: shell, sourced after the call is written down.
PYTHON = """#!/usr/bin/env bash
here=$(dirname "$0")
spec=$5
shift 5
variant=$(sed -n 's/^ "variant": "\\(.*\\)",$/\\1/p' "$spec")
block=$(sed -n 's/^ "block": \\(.*\\),$/\\1/p' "$spec")
say() { echo "$block $variant ${GPUBENCH_RANK-none} $*" >>"$here/calls"; }
say "$@"
if [ -f "$here/do/$variant" ]; then . "$here/do/$variant"; fi
"""
# Each look at the clock of the day is an hour earlier, or an hour later: somebody sets it all the time.
DATE = """#!/usr/bin/env bash
echo "$((1000000000 + (RANDOM % 2 ? 3600 : -3600))).123456789"
"""


class Campaign:
    """A rendered campaign whose images' Python is the script above."""

    def __init__(self, directory: Path, uptime: Path = Path("/proc/uptime"), **changes: Any) -> None:
        self.directory = directory / "campaign"
        self.tools = directory / "tools"
        (self.tools / "do").mkdir(parents=True)
        self.tool("python", PYTHON)
        stub = {"python": str(self.tools / "python")}
        images = {ucx: image(ucx).model_copy(update=stub) for ucx in ("1", "2", "3")}
        self.plan: Plan = plan("a=1 b=2", **{"blocks": 2, "seed": 3, "images": images, **changes})
        for name, data in render_jobs(
            self.plan, self.plan.jobs, resources.texts("templates", "**/*.sh.j2"), b""
        ).items():
            path = self.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data.replace(b"/proc/uptime", str(uptime).encode()))
        self.script = self.directory / "jobs" / self.plan.jobs[0].job / "job.sh"

    def tool(self, name: str, text: str) -> None:
        (self.tools / name).write_text(text)
        (self.tools / name).chmod(0o755)

    def when(self, variant: str, shell: str) -> None:
        (self.tools / "do" / variant).write_text(shell + "\n")

    @property
    def calls(self) -> list[str]:
        path = self.tools / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def planned(self, rank: str = "0") -> list[str]:
        return [f"{block.block} {run.variant} {rank} " for _, block, run in self.plan.runs()]

    def start(self, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", str(self.script)],
            cwd="/",
            env={"PATH": f"{self.tools}:{os.environ['PATH']}", **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, **env: str) -> int:
        process = self.start(**env)
        output, _ = process.communicate(timeout=150)
        assert output == ""
        return process.returncode

    def wait_for_call(self, text: str, times: int = 1) -> None:
        until(lambda: sum(text in call for call in self.calls) >= times, text)


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return Campaign(tmp_path)


@pytest.fixture
def two_nodes(tmp_path: Path) -> Campaign:
    return Campaign(tmp_path, nodes=[2])


@pytest.fixture
def holding(campaign: Campaign) -> Campaign:
    """Every run lasts until it is told to end, and then takes a moment for it."""
    for variant in "ab":
        campaign.when(
            variant, "trap 'sleep 0.2; say ended; exit 40' TERM; say holding; while true; do sleep 0.02; done"
        )
    return campaign


def test_runs_take_place_in_the_planned_order_one_after_the_other(campaign: Campaign) -> None:
    for variant in "ab":
        campaign.when(variant, "sleep 0.05; say done")
    assert campaign.run() == 0
    assert campaign.calls == [line for call in campaign.planned() for line in (call, call + "done")]


def test_two_nodes_are_two_supervisors_with_ranks_0_and_1_for_every_run(two_nodes: Campaign) -> None:
    assert two_nodes.run() == 0
    calls = two_nodes.calls
    pairs = [sorted(calls[at : at + 2]) for at in range(0, len(calls), 2)]
    assert pairs == [sorted(pair) for pair in zip(two_nodes.planned("0"), two_nodes.planned("1"), strict=True)]


@pytest.mark.parametrize(("nodes", "bad"), [(1, 0), (2, 1)])
def test_a_node_that_is_not_clean_ends_its_block_but_not_the_job(tmp_path: Path, nodes: int, bad: int) -> None:
    campaign = Campaign(tmp_path, nodes=[nodes])
    first = campaign.planned()[0].split()[1]
    second = "b" if first == "a" else "a"
    campaign.when(first, f'if [ "$block ${{GPUBENCH_RANK-none}}" = "1 {bad}" ]; then exit 40; fi')
    assert campaign.run() == 40
    reason = "--rank 0 --skip the run before it ended with exit code 40: a node can't be used"
    assert sorted(campaign.calls[:nodes]) == [f"1 {first} {rank} " for rank in range(nodes)]
    assert campaign.calls[nodes] == f"1 {second} none {reason}"
    later = [call for rank in range(nodes) for call in campaign.planned(str(rank)) if not call.startswith("1 ")]
    assert sorted(campaign.calls[nodes + 1 :]) == sorted(later)


def test_a_block_that_can_not_end_in_time_is_skipped_with_the_reason(tmp_path: Path) -> None:
    uptime = tmp_path / "uptime"  # time passes only where a run takes it
    uptime.write_text("5000.5 9.9\n")
    timed = Campaign(tmp_path, uptime, blocks=3, site=site('[limits]\njob = "100s"\n'))  # a block takes 16 s, surely 24
    timed.tool("date", DATE)
    for variant in "ab":
        timed.when(variant, f'read -r up _ <{uptime}; echo "$((${{up%.*}} + 20)).5 9.9" >{uptime}')
    assert timed.run() == 0
    planned = timed.planned()
    reason = "--rank 0 --skip no time left: the block takes about 24 s, the job ends in 20 s"
    assert timed.calls == [*planned[:4], *(f"{call.removesuffix('0 ')}none {reason}" for call in planned[4:])]


@pytest.mark.parametrize(("chosen", "numbers"), [("2", [2]), ("1 3", [1, 3]), ("12", []), ("3 2", [2, 3])])
def test_blocks_can_be_chosen(tmp_path: Path, chosen: str, numbers: list[int]) -> None:
    some = Campaign(tmp_path, blocks=3)
    assert some.run(GPUBENCH_BLOCKS=chosen) == 0
    assert some.calls == [call for call in some.planned() if int(call.split()[0]) in numbers]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_reaches_the_supervisor_and_nothing_more_runs(holding: Campaign, number: int) -> None:
    job = holding.start()
    holding.wait_for_call("holding")
    job.send_signal(number)
    output, _ = job.communicate(timeout=150)
    assert (job.returncode, output) == (130, "")
    first = holding.planned()[0]
    assert holding.calls == [first, first + "holding", first + "ended"]


def test_a_signal_that_comes_while_supervisors_are_being_started_reaches_all_of_them(two_nodes: Campaign) -> None:
    for variant in "ab":
        two_nodes.when(
            variant,
            "trap 'exit 40' TERM; [ \"$GPUBENCH_RANK\" = 0 ] && kill -TERM $PPID; while true; do sleep 0.02; done",
        )
    assert two_nodes.run() == 130
    assert len({tuple(call.split()[:2]) for call in two_nodes.calls}) == 1


@pytest.mark.parametrize("blocks", [1, 2])
def test_a_signal_that_comes_while_a_reason_is_being_written_ends_the_job_too(tmp_path: Path, blocks: int) -> None:
    campaign = Campaign(tmp_path, blocks=blocks)
    first = campaign.planned()[0].split()[1]
    second = "b" if first == "a" else "a"
    campaign.when(first, "exit 40")
    campaign.when(second, "kill -TERM $PPID")
    assert campaign.run() == 130
    assert [call.split()[:2] for call in campaign.calls] == [["1", first], ["1", second]]


def test_supervisors_see_the_end_of_the_front_end_on_their_standard_input(two_nodes: Campaign) -> None:
    for variant in "ab":
        two_nodes.when(variant, "say reading; cat >/dev/null; say eof")
    job = two_nodes.start(GPUBENCH_BLOCKS="1")
    two_nodes.wait_for_call("reading", times=2)
    assert not [call for call in two_nodes.calls if call.endswith("eof")]
    assert job.stdin
    job.stdin.close()
    assert job.wait(150) == 0
    assert sum(call.endswith("eof") for call in two_nodes.calls) == 4
    assert job.stdout
    job.stdout.close()


def test_supervisors_know_the_campaign_and_a_token_that_is_new_for_every_start(two_nodes: Campaign) -> None:
    for variant in "ab":
        two_nodes.when(variant, 'say "$OUTDIR $GPUBENCH_JOB_TOKEN"')
    tokens = []
    for _ in range(2):
        assert two_nodes.run() == 0
        said = [call.split()[3:] for call in two_nodes.calls if len(call.split()) > 3]
        (two_nodes.tools / "calls").unlink()
        assert {words[0] for words in said} == {str(two_nodes.directory)}
        (token,) = {words[1] for words in said}
        tokens.append(token)
    assert len(set(tokens)) == 2
    assert all(len(token) == 16 for token in tokens)


@pytest.mark.parametrize(
    ("env", "places"),
    [
        ({"GPUBENCH_OUTDIR": "/else where", "GPUBENCH_SCRATCHDIR": "/fast"}, "/else where /fast"),
        # What a shell exports for something else.
        ({"OUTDIR": "/another", "SCRATCHDIR": "/another", "TMPDIR": "/of/the/job"}, "{campaign} /of/the/job"),
    ],
)
def test_results_and_scratch_can_be_sent_elsewhere_by_names_that_nobody_else_has(
    campaign: Campaign, env: dict[str, str], places: str
) -> None:
    campaign.when("a", 'say "$OUTDIR $SCRATCHDIR"')
    assert campaign.run(**env) == 0
    said = {call.split(" ", 3)[3] for call in campaign.calls if call.split()[1] == "a"}
    assert said == {"", places.format(campaign=campaign.directory)}


@pytest.mark.parametrize("behind_s", [-300, 0, 300])
def test_slurms_end_of_a_job_is_moved_from_its_controllers_clock_to_the_nodes(tmp_path: Path, behind_s: int) -> None:
    campaign = Campaign(tmp_path, site=site(scheduler="slurm", launcher="srun"))
    script = campaign.script.read_text()
    begin, mark = script.index("# Set here whatever"), "export GPUBENCH_END\n"
    there = int(time.time()) + behind_s
    campaign.tool("squeue", f"#!/usr/bin/env bash\ndate -d @{there + 600} +%Y-%m-%dT%H:%M:%S\n")
    campaign.tool("sdiag", f'#!/usr/bin/env bash\nprintf "***\\nsdiag output at Mon Nov 23 2026 ({there})\\n***\\n"\n')
    part = script[begin : script.index(mark)] + 'echo "$((GPUBENCH_END - $(now)))"\n'
    done = subprocess.run(
        ["bash", "-uc", part],
        cwd=campaign.script.parent,
        env={"PATH": f"{campaign.tools}:{os.environ['PATH']}", "SLURM_JOB_ID": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert 590 <= int(done.stdout) <= 600, done.stderr
