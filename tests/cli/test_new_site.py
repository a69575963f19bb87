"""`gpubench sites new` on machines of stand-in commands: what they say becomes a profile, every guess marked."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from gpubench.cli.sites.new_site import slurm_seconds
from tests.cli.test_bad_input import one_line
from tests.conftest import Run

SINFO = """\
debug|2|8|16000|(null)|30:00
gpu*|2|64+|515000+|gpu:h100:4(S:0-3)|1-00:00:00
gpu*|30|32|257000|gpu:a100:2(S:0-1),tmp:5|1-00:00:00
"""
UCX = """\
#      Transport: tcp
#         Device: eth0
#      Transport: rc_mlx5
#         Device: mlx5_1:1
"""
LOGIN_NODE = {
    "sinfo": f"cat <<'END'\n{SINFO}END",
    "scontrol": "echo 'Configuration data'; echo 'ClusterName             = hopper'",
    "nvidia-smi": 'case "$*" in *compute_cap*) echo "81920, 9.0";; *) echo "| CUDA Version: 12.4     |";; esac',
    "ip": 'case "$*" in *route*) echo "default via 10.0.0.1 dev eth0";;'
    ' *) echo "1: lo    inet 127.0.0.1/8"; echo "2: eth0    inet 10.0.0.2/8"; echo "3: ib0    inet 10.1.0.2/8";; esac',
    "ucx_info": f"cat <<'END'\n{UCX}END",
    "apptainer": "true",
}


def machine(folder: Path, programs: dict[str, str]) -> dict[str, str]:
    """A PATH on which there are only these programs and those of the base system."""
    bin_ = folder / "bin"
    bin_.mkdir()
    for name, script in programs.items():
        (bin_ / name).write_text(f"#!/bin/sh\n{script}\n")
        (bin_ / name).chmod(0o755)
    for name in ("sh", "cat"):
        (bin_ / name).symlink_to(f"/bin/{name}")
    return {"PATH": str(bin_)}


def test_what_the_commands_say_becomes_a_profile_that_passes_its_check(gpubench: Run, tmp_path: Path) -> None:
    done = gpubench("sites", "new", "hopper", env=machine(tmp_path, LOGIN_NODE))
    assert (done.returncode, done.stderr) == (0, "")
    assert "not asked" not in done.stdout
    text = (tmp_path / "hopper.toml").read_text()
    plain = tomllib.loads(text)
    assert (plain["scheduler"], plain["launcher"], plain["runtime"]) == ("slurm", "srun", "apptainer")
    assert (plain["description"], plain["device"], plain["interface"]) == ("Slurm cluster hopper", "gpu", "ib0")
    assert plain["layout"] == {"workers": 2, "threads": 1}
    assert plain["node"] == {"cores": 32, "gpus": 2, "gpu_memory": "81920MiB"}
    assert (plain["batch"], plain["limits"]) == ({"queue": "gpu"}, {"job": "240m"})
    assert (plain["image"]["cuda"], plain["image"]["compute_capability"]) == ("12.4", "9.0")
    assert plain["defaults"]["nodes"] == [1, 2]
    guessed = {line.split(" = ")[0] for line in text.splitlines() if "# guess: " in line}
    asked_for = {"name", "protocol", "env_allow", "shared"}
    written = {line.split(" = ")[0] for line in text.splitlines() if re.match(r"\w+ = ", line)}
    assert written - asked_for <= guessed
    for words in ("other partitions: debug", "lists: rc_mlx5, tcp", "devices: mlx5_1:1", 'memory = "257000MiB"'):
        assert words in text
    schema = text.split("\n")[0].removeprefix("#:schema file://")
    assert json.loads(Path(schema).read_text())["title"] == "Site"
    done = gpubench("sites", "check", "./hopper.toml")
    (wrong,) = (line for line in done.stdout.splitlines() if line.startswith("wrong"))
    assert (done.returncode, wrong.partition(" is empty")[0]) == (2, "wrong: paths.shared")
    filled = gpubench("sites", "check", "./hopper.toml", "--set", "paths.shared=['/home']")
    assert (filled.returncode, "wrong" in filled.stdout) == (0, False), filled.stdout
    (tmp_path / "hopper.toml").write_text(text.replace("shared = []", 'shared = ["/home"]'))
    done = gpubench("sites", "check", "./hopper.toml")
    assert done.returncode == 0, done.stdout
    assert "wrong" not in done.stdout
    done = gpubench("plan", "--site", "hopper.toml")
    assert done.returncode == 0, done.stderr


def test_what_is_not_found_is_said_and_the_check_names_what_must_be_filled_in(gpubench: Run, tmp_path: Path) -> None:
    broken = {"sinfo": "printf 'sinfo: error: resolving\\nsinfo: no controller\\n' >&2; exit 1", "scontrol": "exit 3"}
    done = gpubench(
        *("sites", "new", "bare", "--scheduler", "slurm", "--runtime", "pyxis"), env=machine(tmp_path, broken)
    )
    assert done.returncode == 0, done.stderr
    for words in (
        "no answer: sinfo: no controller",
        "no answer: scontrol: exit code 3",
        "no answer: there is no ip on this machine",
        "no answer: there is no nvidia-smi on this machine",
        "no answer: there is no ucx_info on this machine",
        "3 to fill in: interface, batch.queue, paths.shared\n",
    ):
        assert words in done.stdout
    text = (tmp_path / "bare.toml").read_text()
    for line in (
        "the compute nodes' network interface",
        "the partition that jobs go to",
        "file systems that every node",
    ):
        assert f"# fill in: {line}" in text
    assert "# enroot is not on this machine; the compute nodes need it." in text
    done = gpubench("sites", "check", "./bare.toml")
    wrong = [line for line in done.stdout.splitlines() if line.startswith("wrong")]
    for key in ("interface", "batch.queue", "paths.shared"):
        assert f"wrong: {key} is empty, and bare.toml says that it must be filled in" in wrong
    assert (done.returncode, len(wrong)) == (2, 4)
    assert "wrong: interface '' can't be the name of a network device" in wrong
    assert "not checked: paths.shared" not in done.stdout


@pytest.mark.parametrize(
    ("programs", "triple"),
    [
        ({}, ("local", "fork", "venv")),
        ({"docker": "true"}, ("local", "fork", "docker")),
        ({"qsub": "true"}, ("pbs", "ssh", "venv")),
        ({"kubectl": "true"}, ("kubernetes", "indexed-job", "pod")),
    ],
)
def test_adapters_that_nobody_names_follow_what_is_here(
    gpubench: Run, tmp_path: Path, programs: dict[str, str], triple: tuple[str, ...]
) -> None:
    done = gpubench("sites", "new", "mine", env=machine(tmp_path, programs))
    assert done.returncode == 0, done.stderr
    plain = tomllib.loads((tmp_path / "mine.toml").read_text())
    assert (plain["scheduler"], plain["launcher"], plain["runtime"]) == triple


def test_a_file_that_exists_is_left_as_it_is(gpubench: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("mine")
    done = gpubench("sites", "new", "mine")
    assert (done.returncode, "mine.toml exists already" in one_line(done)) == (2, True)
    assert (tmp_path / "mine.toml").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["a/b"], 2, "'a/b': no name"),
        (["mine", "--scheduler", "slrum"], 2, "no scheduler 'slrum' (did you mean 'slurm'?)"),
        (["mine", "--scheduler", "lsf", "--runtime", "docker"], 6, "lsf + docker don't go together; they go together:"),
    ],
)
def test_a_wrong_word_is_named_and_nothing_is_written(
    gpubench: Run, tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    done = gpubench("sites", "new", *words)
    assert (done.returncode, said in one_line(done)) == (code, True), done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30:00", 1800), ("4:00:00", 14400), ("2-01:00:00", 176400), ("infinite", 0), ("", 0)],
)
def test_slurms_time_limits_are_read(text: str, seconds: int) -> None:
    assert slurm_seconds(text) == seconds
