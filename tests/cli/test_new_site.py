"""`gpubench sites new`: a profile to fill in, for every combination of adapters that there is."""

import json
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpubench.plan.adapter_combinations import VALID
from gpubench.sites import survey
from gpubench.sites.new_site import new_site
from tests.answers import install
from tests.conftest import Run


def test_a_new_profile_says_what_to_fill_in_and_passes_its_check_once_that_is_done(
    gpubench: Run, tmp_path: Path
) -> None:
    done = gpubench("sites", "new", "hopper", "--scheduler", "slurm", "--runtime", "apptainer")
    assert (done.returncode, done.stderr) == (0, "")
    assert "hopper.toml: fill in interface, batch.queue, paths.shared\n" in done.stdout
    text = (tmp_path / "hopper.toml").read_text()
    schema = text.split("\n")[0].removeprefix("#:schema file://")
    assert json.loads(Path(schema).read_text())["title"] == "Site"
    done = gpubench("sites", "check", "./hopper.toml")
    wrong = [line for line in done.stdout.splitlines() if line.startswith("wrong")]
    for key in ("interface", "batch.queue", "paths.shared"):
        assert f"wrong: {key} is empty, and hopper.toml says that it must be filled in" in wrong
    assert (done.returncode, len(wrong)) == (2, 3)
    assert "not checked: paths.shared" not in done.stdout
    filled = text.replace('interface = ""', 'interface = "hsn0"').replace('queue = ""', 'queue = "gpu"')
    (tmp_path / "hopper.toml").write_text(filled)
    done = gpubench("sites", "check", "./hopper.toml", "--set", "paths.shared=['/home']")
    assert (done.returncode, "wrong" in done.stdout) == (0, False), done.stdout
    (tmp_path / "hopper.toml").write_text(filled.replace("shared = []", 'shared = ["/home"]'))
    done = gpubench("plan", "--site", "hopper.toml", code=0)


@pytest.mark.parametrize("triple", sorted(VALID), ids="+".join)
def test_every_combination_of_adapters_has_a_profile_that_can_be_read_with_every_comment_taken_away(
    gpubench: Run, tmp_path: Path, triple: tuple[str, str, str]
) -> None:
    scheduler, launcher, runtime = triple
    new_site("mine", scheduler, launcher, runtime, tmp_path)
    text = (tmp_path / "mine.toml").read_text()
    plain = tomllib.loads(text)
    assert (plain["scheduler"], plain["launcher"], plain["runtime"]) == triple
    _, _, keys = text.partition('name = "mine"')
    (tmp_path / "whole.toml").write_text(f'name = "whole"{keys}'.replace("\n# ", "\n"))
    gpubench("sites", "list", "./whole.toml", code=0)


ASKED = ("sinfo", "ip", "nvidia-smi", "ucx_info")
COMPUTE_NODE = ('interface = ""', 'interface = "eth0"'), ("shared = []", 'shared = ["/home"]')


OnMachine = Callable[[str, str], "subprocess.CompletedProcess[str]"]
NEW = "sites new m --scheduler slurm --runtime apptainer"


@pytest.fixture
def on_machine(gpubench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OnMachine:
    """Run the command where the commands of the file ``name`` of real answers are, and no other one of ``ASKED``."""
    monkeypatch.setattr(survey, "INFINIBAND", tmp_path / "none")
    monkeypatch.setattr(survey, "MOUNTS", tmp_path / "mounts")
    (tmp_path / "mounts").touch()

    def run(name: str, words: str) -> subprocess.CompletedProcess[str]:
        return gpubench(*words.split(), env={"PATH": install(f"sites/{name}", tmp_path / name, ASKED)})

    return run


@pytest.mark.parametrize(
    ("place", "known", "lacks"),
    [
        ("ascend nextgen", {"device": "gpu", "gpus": 4, "cores": 96, "workers": 4}, ["image.cuda", "image.base"]),
        ("infiniband compute", {"device": "cpu", "gpus": None, "cores": 128, "workers": 2}, ["image.fabric"]),
        ("login-gpu cpu", {"device": "cpu", "gpus": None, "cores": 256, "workers": 2}, []),
        ("login-gpu gpu", {"device": "gpu", "gpus": 4, "cores": 128, "workers": 4}, ["image.compute_capability"]),
        ("nesi genoa", {"device": None, "gpus": None, "cores": None, "workers": 2}, []),
        ("moss dev", {"device": None, "gpus": None, "cores": None, "workers": 2}, []),
        ("noctua2 gpu", {"device": "gpu", "gpus": 4, "cores": 128, "workers": 4}, ["image.cuda"]),
        ("alpine mixed", {"device": None, "gpus": None, "cores": 48, "workers": 2}, []),
        ("alpine aa100", {"device": None, "gpus": None, "cores": None, "workers": 2}, []),
    ],
)
def test_what_sinfo_says_of_a_whole_partition_is_written_and_nothing_else(
    on_machine: OnMachine,
    tmp_path: Path,
    place: str,
    known: dict[str, object],
    lacks: list[str],
) -> None:
    machine, partition = place.split()
    done = on_machine(machine, f"{NEW} --partition {partition}")
    assert done.returncode == 0, done.stderr
    plain = tomllib.loads((tmp_path / "m.toml").read_text())
    assert plain["batch"]["queue"] == partition
    assert plain["defaults"].get("suite") == ("gpu-node" if known["device"] == "gpu" else None)
    node = {"device": plain.get("device"), "workers": plain["layout"]["workers"], **plain["node"]}
    assert {key: node.get(key) for key in known} == known
    assert "gpu_memory" not in node
    missing = done.stdout.partition("fill in ")[2].split("\n")[0].split(", ")
    assert set(lacks) <= set(missing)
    checked = on_machine(machine, "sites check m.toml")
    for key in missing:
        assert f"wrong: {key} is empty, and m.toml says that it must be filled in" in checked.stdout


def test_partitions_are_shown_with_their_nodes_and_gpus_and_none_is_chosen(
    on_machine: OnMachine, tmp_path: Path
) -> None:
    on_machine("login-gpu", NEW)
    text = (tmp_path / "m.toml").read_text()
    assert "# cpu: 3072 nodes, 256 threads and 500 GiB each, no GRES, at most 2-00:00:00, default\n" in text
    assert "# gpu: 1536 nodes, 128 threads and 250 GiB each, gpu:a100:4(S:0-3), at most 2-00:00:00\n" in text
    assert "gpus = 4                          # seen on this machine: 1" in text
    assert "; seen on this machine: 12.4\n" in text
    plain = tomllib.loads(text)
    assert (plain["batch"]["queue"], plain["node"], plain["image"], "device" in plain) == ("", {}, {}, False)
    done = on_machine("login-gpu", f"{NEW} --partition gpus --out other")
    assert (done.returncode, "no partition 'gpus' (did you mean 'gpu'?)" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("machine", "missing", "node", "image", "suite"),
    [
        # One GPU doesn't tell its memory, a driver not the compute capability of its GPUs.
        ("gb10", ["base"], {"gpus": 1}, {"cuda": "13.0", "compute_capability": "12.1"}, "gpu-one"),
        (
            "driver-470",
            ["compute_capability", "base"],
            {"gpus": 2, "gpu_memory": "32510MiB"},
            {"cuda": "11.4"},
            "gpu-node",
        ),
    ],
)
def test_the_gpus_of_the_only_machine_are_its_own_whatever_is_told_of_them(
    on_machine: OnMachine, tmp_path: Path, *, machine: str, missing: list[str], node: Any, image: Any, suite: str
) -> None:
    done = on_machine(machine, "sites new mine --scheduler local --runtime docker")
    assert f"mine.toml: fill in {', '.join(f'image.{key}' for key in missing)}\n" in done.stdout
    plain = tomllib.loads((tmp_path / "mine.toml").read_text())
    assert (plain["device"], plain["node"], plain["defaults"]["suite"]) == ("gpu", node, suite)
    assert plain["image"] == {**image, **dict.fromkeys(missing, "")}


def test_infiniband_and_network_file_systems_are_seen(on_machine: OnMachine, tmp_path: Path) -> None:
    """File systems by the names that /proc/mounts has for them, as ceph-fuse, dfuse (DAOS) and DVS register them."""
    kinds = ["nfs4", "fuse.ceph-fuse", "dvs", "cifs", "fuse.dfuse", "afs", "lustre", "ext4", "fuse.portal", "tmpfs"]
    mounts = "".join(f"x /{kind} {kind} rw 0 0\n" for kind in kinds)
    (tmp_path / "mounts").write_text(mounts)
    on_machine("infiniband", NEW)
    text = (tmp_path / "m.toml").read_text()
    assert "as `ip link` names it there; seen on this machine: eno1, ib0\n" in text
    assert '["rdmacm", "verbs"]; seen on this machine: mlx5_0, ib0\n' in text
    assert ": /nfs4, /fuse.ceph-fuse, /dvs, /cifs, /fuse.dfuse, /afs, /lustre\n" in text


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("batch.queue=cpu node.gpus=1 layout.workers=1 device=gpu", "the queue has no GPUs: cpu: 3072 nodes"),
        ("batch.queue=gpu node.gpus=8 layout.workers=8 device=gpu", "no node of the queue has so many: gpu:"),
        ("batch.queue=gpu device=auto", "node.gpus isn't set, and the nodes have GPUs"),
        ("interface=ib0 device=auto", "interface ib0 is InfiniBand or RoCE, and image.fabric is empty"),
    ],
)
def test_check_says_wrong_for_what_the_site_would_refuse_or_measure_otherwise(
    on_machine: OnMachine, tmp_path: Path, settings: str, message: str
) -> None:
    on_machine("login-gpu", f"{NEW} --partition cpu")
    text = (tmp_path / "m.toml").read_text()
    for old, new in COMPUTE_NODE:
        text = text.replace(old, new)
    (tmp_path / "m.toml").write_text(text)
    right = on_machine("login-gpu", "sites check m.toml")
    assert (right.returncode, "wrong" in right.stdout) == (0, False), right.stdout
    done = on_machine("login-gpu", f"sites check m.toml --set {settings.replace(' ', ' --set ')}")
    lines = [line for line in done.stdout.splitlines() if line.startswith("wrong")]
    assert (done.returncode, any(message in line for line in lines)) == (2, True), done.stdout
