"""The committed script of draco, in full, on a real Slurm: options of pyxis by their stand-in, all else is its own."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpubench.model.images_lock import LOCK_FILE, ImagesLock, LockRow
from gpubench.resources.profiles import load_site
from tests.cli.campaigns import records, write_suite
from tests.conftest import ROOT
from tests.slurm.campaigns import Login, job_ids
from tests.slurm.cluster import SlurmCluster
from tests.slurm.test_campaigns import leave_no_process

pytestmark = [pytest.mark.system, pytest.mark.long, pytest.mark.timeout(600)]  # four runs on a machine that may be busy
NODES = 2
OVERLAY = [
    "batch.queue=batch",  # the cluster's only large partition
    "batch.options=[]",  # --nv-meta is of a plugin of draco's
    "interface=eth0",
    "device=cpu",  # the GPUs are eight times /dev/null
    "layout.rmm_pool=default",  # so there is no memory of theirs to pool
    "layout.workers=1",  # all hosts are one small machine
    "layout.one_machine=true",
    "defaults.blocks=1",
]
"""What differs here from draco; with the places of images and suite."""
IN_THE_SCRIPT = [
    "-#SBATCH --partition=batch_dgx1_m2",
    "+#SBATCH --partition=batch",
    "-#SBATCH --nv-meta=ml-model.rapids-benchmarks",
]
"""What the overlay changes in the script before its blocks."""


@pytest.fixture
def draco() -> Iterator[SlurmCluster]:
    """Four hosts with as many GPUs as draco's."""
    with SlurmCluster(gpus=8) as cluster:
        yield cluster


@pytest.fixture
def login(draco: SlurmCluster, cache: Path, imported: LockRow) -> Login:
    """Root, with one image under the name of each of draco's variants."""
    specs = load_site("draco").defaults.variants
    rows = [imported.model_copy(update={"site": "draco", "spec": spec}) for spec in specs]
    (draco.shared / LOCK_FILE).write_text(ImagesLock(image=rows).dump())
    return Login(draco, draco.shared, cache)


def plain(script: str) -> tuple[list[str], list[list[str]]]:
    """The script's head, and its blocks; without what stands for images, runs and estimates."""
    script = re.sub(r'--container-image=\S+ "--container-name=\S+"', "IMAGE", script)
    script = re.sub(r"^(make_ready .*\n)+", "IMAGES\n", script, flags=re.MULTILINE)
    script = re.sub(r"specs/\S+\.json", "SPEC", script)
    script = re.sub(r"^begin_block \d+ \d+$", "begin_block NUMBER SECONDS", script, flags=re.MULTILINE)
    script = re.sub(r"^# j\d+-n\d+: .*$", "# JOB", script, flags=re.MULTILINE)
    script = re.sub(r"^# Rendered by gpubench \S+ By hand", "# Rendered. By hand", script, flags=re.MULTILINE)
    script = script.replace(',NVIDIA_VISIBLE_DEVICES" "--export=ALL,NVIDIA_VISIBLE_DEVICES=void"', '"')  # device=cpu
    head, *blocks = script.partition("\n# Where the first node")[0].split("\nbegin_block ")
    return head.splitlines(), [block.splitlines() for block in blocks]


def test_the_committed_script_of_draco_runs_to_the_end_and_every_run_is_ok(
    draco: SlurmCluster, login: Login, cache: Path
) -> None:
    suite = write_suite(login.directory, reps=2)
    places = [f"paths.images={cache / 'gpubench'}", f"defaults.suite={suite}"]
    settings = [word for setting in [*OVERLAY, *places] for word in ("--set", setting)]
    login.run(
        "plan", "--images", "--out", "outputs/draco", "--site", "draco", "--nodes", str(NODES), *settings, pyxis=True
    )
    (campaign,) = login.directory.glob("outputs/*")
    login.run("submit", campaign, pyxis=True)
    committed = (ROOT / "tests" / "golden" / "draco" / f"n{NODES}.sh").read_text()
    submitted = (campaign / "jobs" / f"j001-n{NODES}" / "job.sh").read_text()
    committed = committed.replace("CUDA_MPS_PIPE_DIRECTORY,CUDA_VISIBLE_DEVICES,", "")  # of GPU workers only
    (head, blocks), (own_head, own_blocks) = plain(committed), plain(submitted)
    changed = [line for line in difflib.unified_diff(head, own_head, n=0) if line[:2] not in ("--", "++", "@@")]
    assert changed == IN_THE_SCRIPT
    assert own_blocks == blocks[:1]
    (number,) = job_ids(campaign).values()
    shown = draco.wait_job(number, timeout=500)
    assert login.run("status", campaign).endswith("4 ok of 4 runs\n")
    found = records(campaign).values()
    assert {(run["status"], tuple(run["hosts"])) for run in found} == {("ok", ("n1", "n2"))}
    assert {str(run["variant"]) for run in found} == set(load_site("draco").defaults.variants)
    assert (shown["JobState"], shown["TimeLimit"], shown["Account"]) == ("COMPLETED", "02:00:00", "sw_rapids_testing")
    assert re.fullmatch(r"gres[:/]gpu:8", shown["TresPerNode"])
    leave_no_process(draco)
