"""The playbook of ``gpubench sites prereqs`` under a real Ansible: checked, linted, and run on this machine, twice."""

import hashlib
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, Run, need, plain_environment

LINES = "{extends: default, rules: {line-length: {max: 140}}}"  # the installer's address is that long
INSTALLER = """#!/usr/bin/env bash
set -eu
[ "$*" = "-b -u -p $4" ]
mkdir -p "$4/bin"
touch "$4/bin/conda"
"""


@pytest.fixture
def playbook(gpubench: Run, tmp_path: Path) -> Path:
    gpubench("sites", "prereqs", "deepops", "--out", "out", code=0)
    return tmp_path / "out" / "prereqs.yml"


@pytest.fixture(scope="module")
def ansible(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of a virtual environment with Ansible and its linters, from their own lock."""
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    venv = tmp_path_factory.mktemp("ansible")
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, venv / "venv"], check=True)
    python = venv / "venv" / "bin" / "python"
    lock = ROOT / "requirements" / "ansible.txt"
    done = subprocess.run(
        [uv, "pip", "install", "-q", "--python", python, "--require-hashes", "-r", lock],
        capture_output=True,
        text=True,
        check=False,
    )
    need(done.returncode == 0, f"a package index with Ansible ({done.stderr.strip()[-200:]})")
    return python.parent


def call(ansible: Path, directory: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    env = {"PATH": f"{ansible}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "ANSIBLE_HOME": str(directory / ".ansible")}
    return subprocess.run(
        [ansible / words[0], *map(str, words[1:])],
        cwd=directory,
        env=plain_environment({**env, "ANSIBLE_NOCOLOR": "1", "NO_COLOR": "1"}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


def test_the_same_profile_gives_the_same_files_and_nobody_may_write_everywhere(
    gpubench: Run, playbook: Path, tmp_path: Path
) -> None:
    gpubench("sites", "prereqs", "deepops", "--out", "again", code=0)
    for path in playbook.parent.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()
    assert "777" not in playbook.read_text().replace("775", "")
    pins = [line for line in playbook.with_name("environment.yml").read_text().splitlines() if "  - " in line][4:]
    assert pins
    assert all("=" in pin for pin in pins)


@pytest.mark.system
@pytest.mark.long
def test_ansible_and_its_linters_have_no_word_against_it(ansible: Path, playbook: Path) -> None:
    here = playbook.parent
    for words in (
        ["ansible-playbook", "--syntax-check", "-i", "localhost,", playbook.name],
        ["ansible-lint", "--offline", "--strict", "--profile", "production", playbook.name],
        ["yamllint", "--strict", "-d", LINES, playbook.name, "environment.yml"],
    ):
        done = call(ansible, here, *words)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.system
def test_a_real_run_makes_directory_and_conda_and_a_second_one_changes_nothing(
    ansible: Path, playbook: Path, tmp_path: Path
) -> None:
    """Packages are left out: they would be installed on this machine. The installer is a stand-in of ours."""
    need(os.geteuid() == 0, "root, for become")
    installer = tmp_path / "installer.sh"
    installer.write_text(INSTALLER)
    shared, conda = tmp_path / "shared", tmp_path / "conda"
    values = {
        "ansible_python_interpreter": str(ansible / "python"),
        "gpubench_shared": str(shared),
        "gpubench_conda": str(conda),
        "gpubench_conda_url": f"file://{installer}",
        "gpubench_conda_checksum": f"sha256:{hashlib.sha256(installer.read_bytes()).hexdigest()}",
    }
    given = [word for name, value in values.items() for word in ("-e", f"{name}={value}")]
    run = ["ansible-playbook", "-i", "localhost,", "-c", "local", "--tags", "files,conda", *given, playbook.name]
    first = call(ansible, playbook.parent, *run)
    assert first.returncode == 0, first.stdout + first.stderr
    assert (conda / "bin" / "conda").exists()
    assert not (tmp_path / "conda.sh").exists()
    assert stat.S_IMODE(shared.stat().st_mode) == 0o2775
    assert (shared / "environment.yml").read_bytes() == playbook.with_name("environment.yml").read_bytes()
    second = call(ansible, playbook.parent, *run)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "changed=0" in second.stdout
    wrong = call(ansible, playbook.parent, *run[:-1], "-e", f"gpubench_conda={tmp_path / 'other'}", "-e",
                 "gpubench_conda_checksum=sha256:" + "0" * 64, playbook.name)  # fmt: skip
    assert wrong.returncode != 0
    assert not (tmp_path / "other").exists()
