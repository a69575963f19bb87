"""gpubench as a user of an index gets it: a wheel in a fresh environment, away from the checkout."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conftest import ROOT, own_queue, plain_environment

UV = Path(sys.executable).with_name("uv")


@dataclasses.dataclass(frozen=True)
class Environment:
    """A virtual environment with pip and what gpubench depends on, and the files that were built."""

    directory: Path
    wheel: Path
    sdist: Path

    def variables(self, home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Of a shell in which the environment is active; nothing of this checkout is on any path."""
        plain = {name: value for name, value in plain_environment().items() if name != "VIRTUAL_ENV"}
        path = [one for one in plain["PATH"].split(os.pathsep) if not Path(one).is_relative_to(ROOT)]
        return {
            **plain,
            "PATH": os.pathsep.join([str(self.directory / "bin"), *path]),
            "PIP_NO_INDEX": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            **own_queue(home),
            **(more or {}),
        }


@pytest.fixture(scope="session")
def wheel_environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Wheel and sdist, built once, and an environment that has all but the wheel."""
    directory = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-d", str(directory / "dist"), cwd=ROOT)
    (wheel,), (sdist,) = ((directory / "dist").glob(pattern) for pattern in ("*.whl", "*.tar.gz"))
    python = directory / "env" / "bin" / "python"
    run(UV, "venv", "-q", "--seed", "--python", sys.executable, str(directory / "env"), cwd=directory)
    lock = ("--require-hashes", "--only-binary", ":all:", "-r", str(ROOT / "requirements" / "tool.txt"))
    run(UV, "pip", "install", "-q", "--python", str(python), *lock, cwd=directory)
    return Environment(directory / "env", wheel, sdist)


@pytest.fixture(scope="session")
def installed(wheel_environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """With the wheel."""
    home = tmp_path_factory.mktemp("install")
    run(
        "python",
        "-m",
        "pip",
        "install",
        "-q",
        str(wheel_environment.wheel),
        cwd=home,
        env=wheel_environment.variables(home),
    )
    return wheel_environment


def run(*words: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """What a command says; it must succeed."""
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, env=env, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
