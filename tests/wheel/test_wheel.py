"""Wheel and sdist: what a fresh environment away from any checkout can do with them, and what they say they are."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import gpubench
from tests.conftest import ROOT
from tests.wheel.conftest import Environment, run

pytestmark = pytest.mark.system
GOLDEN = ROOT / "tests" / "golden" / "schemas" / "1" / "campaign"


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_works_in_an_empty_directory(installed: Environment, tmp_path: Path) -> None:
    env = installed.variables(tmp_path)

    def said(*words: str) -> str:
        return run("gpubench", *words, cwd=tmp_path, env=env)

    where = run("python", "-c", "import gpubench; print(gpubench.__file__)", cwd=tmp_path, env=env)
    assert Path(where.strip()).is_relative_to(installed.directory)
    assert said("--version").strip() == gpubench.__version__
    assert {line.split()[0] for line in said("sites", "list").splitlines()} >= {"draco", "local", "perlmutter"}
    assert "on site draco" in said("plan", "--site", "draco", "--ucx", "v1.12.x v1.14.x")
    shutil.copytree(GOLDEN, tmp_path / "tiny")
    said("report", "tiny")
    page = (tmp_path / "tiny" / "report.html").read_text()
    assert "<h1" in page
    assert '<div class="chart broad" id="chart-forest"' in page
    said("sites", "new", "mine", "--scheduler", "slurm", "--runtime", "venv")
    schema = (tmp_path / "mine.toml").read_text().split("\n")[0].removeprefix("#:schema file://")
    assert Path(schema).is_relative_to(installed.directory)
    assert Path(schema).is_file()


def test_the_wheel_that_the_sdist_makes_has_the_same_files(wheel_environment: Environment, tmp_path: Path) -> None:
    subprocess.run(["tar", "-xf", wheel_environment.sdist, "-C", tmp_path], check=True)
    (source,) = tmp_path.iterdir()
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist"), cwd=source)
    (wheel,) = (tmp_path / "dist").iterdir()
    assert names(wheel) == names(wheel_environment.wheel)


def test_the_metadata_names_licence_version_and_classifiers(wheel_environment: Environment) -> None:
    with zipfile.ZipFile(wheel_environment.wheel) as archive:
        (name,) = [one for one in archive.namelist() if one.endswith(".dist-info/METADATA")]
        metadata = Parser().parsestr(archive.read(name).decode())
        licence = archive.read(name.replace("METADATA", "licenses/LICENSE")).decode()
    assert metadata["Version"] == gpubench.__version__
    assert (
        wheel_environment.wheel.name.split("-")[1] == wheel_environment.sdist.name.removesuffix(".tar.gz").split("-")[1]
    )
    assert (metadata["License-Expression"], metadata.get_all("License-File")) == ("Apache-2.0", ["LICENSE"])
    assert licence == (ROOT / "LICENSE").read_text()
    assert "Programming Language :: Python :: 3.11" in metadata.get_all("Classifier", [])
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"


def test_the_version_stands_in_one_file(wheel_environment: Environment) -> None:
    """A release changes that line and the changelog, and nothing can be forgotten."""
    with tarfile.open(wheel_environment.sdist) as archive:
        texts = {
            member.name.partition("/")[2]: archive.extractfile(member).read()  # type: ignore[union-attr]
            for member in archive.getmembers()
            if member.name.endswith((".py", ".toml", ".cfg", ".md", ".yml"))
        }
    line = f'__version__ = "{gpubench.__version__}"'.encode()
    assert [name for name, text in texts.items() if line in text] == ["gpubench/__init__.py"]
    (plain,) = [text for name, text in texts.items() if name == "pyproject.toml"]
    assert b'dynamic = ["version"]' in plain
    assert gpubench.__version__.encode() not in plain
