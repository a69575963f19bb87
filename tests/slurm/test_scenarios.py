"""Campaigns by every way into a job: as odd names and values say, cancelled, warned of the end, killed."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import signal
import zipfile
from pathlib import Path
from typing import Any

import pytest

from gpubench.images.variables import parse_configuration
from gpubench.model.images_lock import LockRow
from gpubench.node.spec.records import LOGS_FILE, UCX_CONFIGURATIONS
from gpubench.store.rundirs import read_provenance
from tests.cli.campaigns import records
from tests.conftest import need
from tests.pbs.cluster import PbsCluster
from tests.slurm.campaigns import UCX, Login, job_ids
from tests.slurm.cluster import SlurmCluster
from tests.slurm.hosts import until
from tests.slurm.pyxis_files import creations, unpacked
from tests.slurm.test_campaigns import leave_no_process, left_on, until_running

TOLD = "(interrupted by SIGTERM|the job was told to end)"
"""By a signal of the scheduler's, or down the line from the script."""
pytestmark = pytest.mark.system

BY_SSH = ("--set", "launcher=ssh")
ADAPTERS = {
    "srun": (),
    "pyxis": ("--runtime", "pyxis"),
    "enroot": ("--runtime", "enroot"),
    "apptainer": ("--runtime", "apptainer"),
    "ssh": BY_SSH,
    "pbs": ("--set", "scheduler=pbs", *BY_SSH),
    "apptainer under pbs": ("--set", "scheduler=pbs", *BY_SSH, "--set", "runtime=apptainer"),
}
CONTAINERS = {"pyxis", "enroot", "apptainer"}
LONG = pytest.mark.long

VALUES = {
    "GB_BLANKS": "  a  b ",
    "GB_QUOTES": 'it\'s "quoted" `date`',
    "GB_SUBSTITUTION": "$(date) ${HOME} $PATH !! ~ *",
    "GB_LINES": "one\ntwo\\n\ttab\\",
    "GB_UNICODE": "ü 漢字 🙂",
    "GB_SHELL": "; exit 1 # & | > out",
}
PLACE = 'o\'dd "name" $(date), `x` a=1: JobState=FAILED ü'
PLACES = {
    "pyxis": PLACE.replace(",", "").replace(":", ""),  # its grammar parts mounts by commas and colons
    "enroot": PLACE.replace(":", ""),  # its grammar parts mounts by colons
    "apptainer": "o'dd $(date) `x` a=1 JobState=FAILED ü",  # and by commas, as CSV
    "apptainer under pbs": "o'dd $(date) `x` a=1 JobState=FAILED ü",
}


@dataclasses.dataclass(frozen=True)
class Site:
    """A user, an adapter, and the scheduler that is asked."""

    name: str
    slurm: SlurmCluster
    login: Login
    env: dict[str, str]
    pbs: PbsCluster | None

    def run(self, *words: str | Path, env: dict[str, str] | None = None, **more: Any) -> str:
        return self.login.run(*words, env={**self.env, **(env or {})}, pyxis=self.name in CONTAINERS, **more)

    def plan(self, outputs: Path, *words: str, reps: int = 2) -> Path:
        """A campaign of A against A on two nodes."""
        shape = (*self.login.shape(reps=reps), *ADAPTERS[self.name], "--nodes", "2", *words)
        self.run("plan", "--images", "--site", "local-slurm", "--out", outputs / "c", *shape)
        (campaign,) = outputs.iterdir()
        return campaign

    def started(self, *words: str) -> tuple[Path, str]:
        """A campaign whose first run is taking samples, and its job's number."""
        campaign = self.plan(self.login.directory / "outputs", *words, reps=5000)
        self.run("submit", campaign)
        until_running(self.login, campaign, self.env)
        until(lambda: len(left_on(self.slurm)) == 2, "its processes")
        return campaign, job_ids(campaign)["j001-n2"]

    def wait_end(self, number: str) -> int:
        """The exit code of the job."""
        if self.pbs is None:
            return int(self.slurm.wait_job(number)["ExitCode"].partition(":")[0])
        pbs, of_pbs = self.pbs, number.partition(".")[0]
        until(lambda: pbs.job(of_pbs)["job_state"] == "F", "the end of the job")
        return int(pbs.job(of_pbs)["Exit_status"])


@pytest.fixture
def site(request: pytest.FixtureRequest, slurm: SlurmCluster, imported: LockRow) -> Site:
    """Containers are those of a user other than root; of root where images are mounted and only root may."""
    name: str = request.param
    mounted = "apptainer" in name
    if mounted:
        need(shutil.which("apptainer") is not None, "apptainer (bash requirements/apptainer.sh)")
    by_ssh = name == "ssh" or "pbs" in name
    only_root = mounted and not Path("/dev/fuse").stat().st_mode & 0o002
    login: Login = request.getfixturevalue("login" if by_ssh or only_root else "nobody")
    if name in CONTAINERS or mounted:
        login.lock(imported)
    env = request.getfixturevalue("of_pbs" if "pbs" in name else "of_ssh") if by_ssh else {}
    return Site(name, slurm, login, env, request.getfixturevalue("pbs") if "pbs" in name else None)


def each(*names: str, long: tuple[str, ...] = ()) -> pytest.MarkDecorator:
    """The test with each of these adapters; with some before a release only, since another one walks their path."""
    return pytest.mark.parametrize("site", [*names, *(pytest.param(one, marks=LONG) for one in long)], indirect=True)


@each(*ADAPTERS)
def test_directories_and_variables_arrive_on_two_hosts_as_they_were_written(
    site: Site, slurm: SlurmCluster, imported: LockRow
) -> None:
    before = len(creations(slurm))
    texts = {name: json.dumps(value, ensure_ascii=False) for name, value in VALUES.items()}
    settings = [word for name, text in texts.items() for word in ("--set", f"env.{name}={text}")]
    odd_locale = 'it\'s "odd" $(date) `x`\nand long ü'
    if site.name == "enroot":  # which hands variables on in lines
        odd_locale = odd_locale.replace("\n", " ")
    variants = f"""a={UCX} b={UCX},GB_OF_VARIANT=it's-"q"$(date)`x`;*"""
    outputs = site.login.directory / PLACES.get(site.name, PLACE)
    campaign = site.plan(outputs, "--protocol", "ucx", "--variants", variants, *settings)
    site.run("submit", campaign, env={"TZ": odd_locale})
    assert site.run("status", "--watch", campaign).endswith("2 ok of 2 runs\n")
    for run, record in records(campaign).items():
        assert (record["status"], record["transport"], sorted(record["hosts"])) == ("ok", ["tcp"], ["n1", "n2"])
        provenance = read_provenance(campaign / "runs" / run)
        environments = [node["environment"] for node in provenance["nodes"]]
        assert [{name: seen.get(name) for name in VALUES} for seen in environments] == [VALUES, VALUES]
        with zipfile.ZipFile(campaign / "runs" / run / LOGS_FILE) as logs:
            answers = [logs.read(f"rank0/{name}").decode() for name in UCX_CONFIGURATIONS]
        assert [parse_configuration(answer)["UCX_TLS"].value for answer in answers] == ["all", "all"]
        of_variant = 'it\'s-"q"$(date)`x`;*' if record["variant"] == "b" else None
        assert {(seen.get("GB_OF_VARIANT"), seen["TZ"]) for seen in environments} == {(of_variant, odd_locale)}
        if site.name in CONTAINERS or "apptainer" in site.name:
            assert {process["build_id"] for process in provenance["processes"]} == {imported.build_id}
            assert all(one["ucx"]["path"].startswith("/opt/gpubench/ucx/") for one in provenance["processes"])
    number = job_ids(campaign)["j001-n2"]
    directory = campaign / "jobs" / "j001-n2"
    assert (directory / f"end-{number.partition('.')[0]}").read_text() == "0\n"
    kind = "slurm" if site.pbs is None else "pbs"
    assert str(directory / f"{kind}-{number.partition('.')[0]}.log") in site.run("logs", campaign)
    made = [line.split() for line in creations(slurm)[before:]]
    if site.name == "pyxis":  # one container for both runs
        assert [node for node, *_ in sorted(made)] == ["n1", "n2"]
        (name,) = {name for _, _, name, _ in made}  # a new one for each start of the script
        assert re.fullmatch(f"pyxis_gpubench-{imported.digest[7:23]}-{number}-[0-9a-f]{{8}}", name)
    if site.name == "enroot":  # created once for both runs
        name = f"gpubench-{imported.digest[7:23]}"
        done = (slurm.shared / "pyxis" / "containers").read_text().splitlines()
        created = [line for line in done if not line.partition(" ")[2].partition(" ")[2].startswith("pyxis_")]
        assert sorted(created) == [f"{node} {what} {name}" for node in ("n1", "n2") for what in ("create", "remove")]
    assert unpacked(slurm) == []
    leave_no_process(slurm)


@each("pbs", long=("ssh",))
def test_cancelling_leaves_nothing_on_any_host(site: Site, slurm: SlurmCluster) -> None:
    campaign, number = site.started()
    assert site.run("cancel", campaign) == "job j001-n2: cancelled\n"
    until(lambda: left_on(slurm) == {}, "the end of what ssh started")
    said = site.run("status", campaign, code=4)
    how = ", exit code 143: it was ended by qdel" if site.pbs else ""
    assert f"job j001-n2 ({number}): CANCELLED{how}" in said
    # PBS kills the job as soon as its own login shell has ended, and nobody can write a record.
    end = r"lost: job j001-n2 ended \(CANCELLED" if site.pbs else rf"skipped: (node rank 1: )?{TOLD}"
    assert re.search(rf"^block 1 \w \(\w+\): {end}", said, re.MULTILINE), said


@each("pyxis", "pbs", long=("enroot", "apptainer", "ssh"))
def test_a_job_that_is_warned_of_its_end_leaves_a_record_and_no_process(site: Site, slurm: SlurmCluster) -> None:
    # PBS warns nobody, and starts to count when it starts the job: the script asks it when that was.
    limits = ("--set", "limits.job=4m", "--set", "batch.warning=195s") if site.pbs else ()
    campaign, number = site.started(*limits)
    if not site.pbs:
        slurm.say("scancel", "--batch", "--signal=TERM", number)  # as --signal=B:TERM@ does
    assert site.wait_end(number) == 130
    said = site.run("status", campaign, code=4)
    assert re.search(rf"^block 1 \w \(\w+\): skipped: (node rank 1: )?{TOLD}", said, re.MULTILINE), said
    assert f"job j001-n2 ({number}): FAILED, exit code 130: it was asked to end" in said
    leave_no_process(slurm)
    assert unpacked(slurm) == []


@each(long=("pbs", "ssh"))
def test_a_job_script_that_is_killed_leaves_nothing_on_any_host(site: Site, slurm: SlurmCluster) -> None:
    campaign, number = site.started()
    if site.pbs:
        # The oldest: the process that waits for the warning has the same words.
        lines = slurm.processes_on("n1").items()
        script = min(pid for pid, line in lines if line.startswith("bash ") and "/script" in line)
        os.kill(script, signal.SIGKILL)
        site.wait_end(number)
    else:
        slurm.say("scancel", "--batch", "--signal=KILL", number)
    until(lambda: left_on(slurm) == {}, "the end of what the script started")
    if site.pbs:
        assert f"job j001-n2 ({number}): FAILED, exit code 137" in site.run("status", campaign, code=4)


@each("ssh")
def test_a_killed_remote_supervisor_loses_its_run_and_the_code_is_kept(site: Site, slurm: SlurmCluster) -> None:
    campaign, number = site.started()
    (supervisor,) = (
        pid for pid, line in slurm.processes_on("n2").items() if "node.pyz run" in line and "--role" not in line
    )
    os.kill(supervisor, signal.SIGKILL)
    site.wait_end(number)
    said = site.run("status", campaign, code=4)
    first, second = (line for line in said.splitlines() if line.startswith("block 1"))
    assert "lost: lost node rank 1" in first, said
    assert "skipped: the run before it ended with exit code 137" in second, said
    assert "rank 1 on n2 ended with 137" in (campaign / "jobs" / "j001-n2" / f"slurm-{number}.log").read_text()
    leave_no_process(slurm)


@each("ssh")
def test_a_check_tells_which_node_ssh_does_not_reach(site: Site) -> None:
    check = ("sites", "check", "local-slurm", "--live", "--nodes", "2", *BY_SSH)
    assert "ok: ssh: 2 of 2 nodes left a file: n1, n2" in site.run(*check)
    ssh = site.login.directory / "bin" / "ssh"
    ssh.write_text(ssh.read_text().replace('"$@"', '-o Port=2 "$@"'))
    said = site.run(*check, code=6)
    assert "wrong: ssh: 1 of 2 nodes left a file: n1" in said
    (log,) = site.login.directory.glob("outputs/checks/*/jobs/check/slurm-*.log")
    assert "ssh: connect to host" in log.read_text()
    assert "rank 1 on n2 ended with 255" in log.read_text()
