"""What goes into every container image: the shim, and the step that asks the real UCX what it is."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from gpubench import resources
from gpubench.images.recipes import recipes
from gpubench.render.context import PYTHON, render_context
from gpubench.resources import docker_file
from gpubench.resources.profiles import load_site
from tests.images.conftest import Images

DESCRIBE = docker_file("context/describe.py")
ASK = f"""
import importlib.util, json, sys
from pathlib import Path
spec = importlib.util.spec_from_file_location("describe", {str(DESCRIBE)!r})
describe = importlib.util.module_from_spec(spec)
spec.loader.exec_module(describe)
try:
    print(json.dumps(describe.manifest(json.loads(sys.argv[1]), Path(sys.argv[2]))))
except describe.WrongImageError as error:
    sys.exit(str(error))
"""


def facts(spec: str) -> dict[str, Any]:
    """What the build of a spec knows beforehand."""
    root = docker_file("")
    sources = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    (recipe,) = recipes([spec], load_site("local"))
    context = render_context(recipe, resources.texts("templates"), sources, gpubench="0")
    return json.loads(context.files["build.json"])


def folder(kept: Images, spec: str) -> Path:
    """A real UCX as an image has it: ``bin/``, ``lib/``."""
    return Path(kept[spec][0].env["LD_LIBRARY_PATH"]).parent


def describe(kept: Images, plain: dict[str, Any], ucx: Path) -> tuple[dict[str, Any], str]:
    """The manifest, or why there is none."""
    python = kept["1.17.0"][0].python
    done = subprocess.run(
        [python, "-I", "-B", "-c", ASK, json.dumps(plain), str(ucx)],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    return (json.loads(done.stdout) if done.stdout else {}), done.stderr.strip()


@pytest.mark.integration
def test_the_manifest_is_what_the_library_itself_says(kept: Images) -> None:
    for spec in kept:
        made, error = describe(kept, facts(spec), folder(kept, spec))
        assert error == ""
        venv = kept[spec][1]
        assert made["kind"] == "docker"
        assert made["build_id"] == facts(spec)["build_id"]
        same = ("version", "release", "revision", "configure")
        assert [made["ucx"][key] for key in same] == [venv["ucx"][key] for key in same]
        assert made["ucx"]["libucp"] == venv["ucx"]["libucp"]
        assert made["stack"]["lock"] == venv["stack"]["lock"]
        assert made["stack"]["packages"] == venv["stack"]["packages"]
        assert made["binding"] == venv["binding"]


@pytest.mark.integration
def test_another_ucx_than_the_recipe_says_fails_the_build(kept: Images, tmp_path: Path) -> None:
    def refused(plain: dict[str, Any], ucx: Path) -> str:
        made, error = describe(kept, plain, ucx)
        assert made == {}
        assert "\n" not in error
        return error

    old = folder(kept, "1.17.0")
    assert refused(facts("1.19.0"), old) == "UCX 1.19.0 was to be built, the library says 1.17.0"
    assert refused(facts("none"), old) == f"there is a UCX in {old}, and the recipe says none"
    assert refused(facts("1.17.0"), tmp_path).startswith("UCX can't be loaded: ")
    without_dependency = tmp_path / "ucx"
    shutil.copytree(old, without_dependency, ignore=shutil.ignore_patterns("libucs.so*", "include", "share"))
    assert "libucs.so.0" in refused(facts("1.17.0"), without_dependency)


@pytest.mark.integration
def test_a_ucx_whose_modules_are_missing_or_cant_be_loaded_fails_the_build(kept: Images, tmp_path: Path) -> None:
    """The real wheel keeps libcudart beside UCX's folder, where its modules look for it."""
    installed = folder(kept, "1.17.0")
    alone = tmp_path / "without" / "ucx"
    needless = shutil.ignore_patterns("include", "share", "*.a")
    shutil.copytree(installed, alone, ignore=needless)
    made, error = describe(kept, facts("1.17.0"), alone)
    assert made == {}
    assert re.fullmatch(r"UCX's module libucm_cuda\.so\.0 doesn't find libcudart-[0-9a-f]+\.so\.12[0-9.]+", error)
    whole = tmp_path / "with" / "ucx"
    shutil.copytree(installed, whole, ignore=needless)
    shutil.copytree(installed.parent / "libucx_cu12.libs", whole.parent / "libucx_cu12.libs")
    made, error = describe(kept, facts("1.17.0"), whole)
    assert (error, made["ucx"]["libucp"]) == ("", str((whole / "lib" / "libucp.so.0").resolve()))
    for module in (whole / "lib" / "ucx").glob("libuct_cuda.so*"):
        module.unlink()
    made, error = describe(kept, facts("1.17.0"), whole)
    assert error == "UCX was configured --with-cuda, and has no libuct_cuda: its build found none"


@pytest.mark.integration
def test_a_name_like_a_branch_stands_for_all_its_releases_and_a_missing_ucx_is_fine_for_none(
    kept: Images, tmp_path: Path
) -> None:
    branch = facts("1.17.0")
    branch["ucx"].update(source="git", release="1.17", version="v1.17.x", commit="0" * 40)
    made, error = describe(kept, branch, folder(kept, "1.17.0"))
    assert (error, made["ucx"]["version"], made["ucx"]["commit"]) == ("", "1.17.0", "0" * 40)
    made, error = describe(kept, facts("none"), tmp_path)
    assert (error, made["ucx"]["release"], made["ucx"]["libucp"], made["binding"]["name"]) == ("", "none", "", "none")


@pytest.fixture
def shim(tmp_path: Path) -> Path:
    """The shim with this Python in the place of the image's."""
    path = tmp_path / "bin" / "gpubench"
    path.parent.mkdir()
    text = docker_file("context/gpubench").read_text()
    assert text.count(PYTHON) == 1
    path.write_text(text.replace(PYTHON, sys.executable))
    return path


def campaign(home: Path, name: str) -> Path:
    """A campaign whose node half prints its name and words; returns a spec's path."""
    spec = home / name / "jobs" / "j001-n1" / "specs" / "001-1-x.json"
    spec.parent.mkdir(parents=True)
    spec.touch()
    with zipfile.ZipFile(home / name / "node.pyz", "w") as archive:
        archive.writestr("__main__.py", f"import sys\nprint({name!r}, sys.argv[1:], sys.flags.isolated)\n")
    return spec


def run(shim: Path, *words: str, cwd: Path, outdir: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["sh", str(shim), *words],
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", **({"OUTDIR": outdir} if outdir else {})},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


def test_the_shim_starts_the_node_half_of_the_specs_campaign(shim: Path, tmp_path: Path) -> None:
    mine, other = (campaign(tmp_path, name) for name in ("my campaign", "other"))
    relative = str(mine.relative_to(mine.parents[1]))
    for words in (["--spec", str(mine)], [f"--spec={mine}"], ["--rank", "1", "--spec", relative]):
        done = run(shim, "run", *words, cwd=mine.parents[1], outdir=str(other.parents[3]))
        assert (done.returncode, done.stdout) == (0, f"my campaign {['run', *words]} 1\n")


def test_without_a_spec_the_campaign_is_outdir(shim: Path, tmp_path: Path) -> None:
    campaign(tmp_path, "mine")
    done = run(shim, "run", "--role", "worker", cwd=tmp_path, outdir=str(tmp_path / "mine"))
    assert done.stdout == "mine ['run', '--role', 'worker'] 1\n"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ([], 2, "in an image there is only: gpubench run"),
        (["bench"], 2, "in an image there is only: gpubench run"),
        (["run"], 40, "no node.pyz in ''; give --spec FILE of a campaign, or set OUTDIR to the campaign"),
        (["run", "--spec", "gone.json"], 40, "no node.pyz in ''"),
    ],
)
def test_what_the_shim_cant_start_is_one_line(
    shim: Path, tmp_path: Path, words: list[str], code: int, says: str
) -> None:
    done = run(shim, *words, cwd=tmp_path)
    assert done.returncode == code
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
