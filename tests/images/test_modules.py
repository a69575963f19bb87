"""Software that a site has as modules: found out by loading it, run by loading it again."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from gpubench import resources
from gpubench.model.images_lock import ImagesLock, LockRow
from gpubench.render.conda import render_modules
from gpubench.render.shell import command_line
from gpubench.runtimes import RUNTIMES, ImagePlace
from tests.conftest import ROOT, Run, need
from tests.images.conftest import Images
from tests.plan.requests_by_hand import image, site

STAND_IN = ROOT / "tests" / "stand_ins" / "modules"
REAL = Path("/usr/share/modules")
HOMES = [STAND_IN, pytest.param(REAL, marks=pytest.mark.system)]


class Site:
    """A site whose modules ``ucx/VERSION`` hold real libraries of UCX, and whose prefix holds a real stack."""

    def __init__(self, folder: Path, home: Path, kept: Images, gpubench: Run) -> None:
        self.folder, self.gpubench = folder, gpubench
        self.stack = Path(kept["1.17.0"][0].python).parents[1]
        self.libraries = {spec: one.env["LD_LIBRARY_PATH"] for spec, (one, _) in kept.items()}
        files = folder / "modulefiles"
        (files / "ucx").mkdir(parents=True)
        for spec, libraries in self.libraries.items():
            lines = f"prepend-path LD_LIBRARY_PATH {libraries}\nsetenv UCX_HOME {libraries}\n"
            (files / "ucx" / spec).write_text(f"#%Module1.0\n{lines}")
        self.env = {"MODULESHOME": str(home), "MODULEPATH": str(files), "LD_LIBRARY_PATH": "/of/the/login/shell"}

    def __call__(self, *arguments: str, prefix: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        """``gpubench images``."""
        return self.run("images", *arguments, prefix=prefix, **env)

    def measured(self, version: str) -> subprocess.CompletedProcess[str]:
        """A run with two workers on the modules of one version."""
        return self.run("measure", "message", "--ucx", version)

    def run(self, *arguments: str, prefix: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        names = json.dumps(["ucx/{ucx}"])
        return self.gpubench(
            *(*arguments, "--site", "local", "--set", "runtime=modules"),
            *("--set", f"image.modules={names}", "--set", f"image.prefix={prefix or self.stack}"),
            *("--set", f"paths.images={self.folder / 'images'}"),
            env={**self.env, **env},
        )

    @property
    def rows(self) -> dict[str, LockRow]:
        text = (self.folder / "images.lock.toml").read_text()
        return {row.spec: row for row in ImagesLock.parse(text, "").image}


@pytest.fixture
def own(tmp_path: Path, kept: Images, gpubench: Run, request: pytest.FixtureRequest) -> Site:
    home = getattr(request, "param", STAND_IN)
    need(home.is_dir(), "environment-modules")
    return Site(tmp_path, home, kept, gpubench)


@pytest.mark.integration
@pytest.mark.parametrize("own", HOMES, indirect=True)
def test_what_the_modules_bring_is_locked_and_stays_the_same(own: Site) -> None:
    first = own("build", "1.17.0", "1.19.0")
    assert (first.returncode, first.stderr) == (0, "")
    rows = own.rows
    for spec, row in rows.items():
        assert (row.kind, row.ucx_version, row.binding) == ("modules", spec, "ucxx")
        assert row.python == str(own.stack / "bin" / "python3")
        assert row.env["LD_LIBRARY_PATH"] == f"{own.stack}/lib:{own.libraries[spec]}"
        assert row.env["UCX_HOME"] == own.libraries[spec]
        assert row.env["PATH"].startswith(f"{own.stack}/bin:")
        assert not {"HOME", "MODULEPATH", "LOADEDMODULES", "PWD", "_"} & row.env.keys()
        assert f"{spec}: {row.digest} {row.python}" in first.stdout
        manifest = row.document
        assert (manifest["kind"], manifest["ucx"]["release"]) == ("modules", spec)
        assert Path(manifest["ucx"]["libucp"]).parent == Path(own.libraries[spec]).resolve()
    assert len({row.digest for row in rows.values()}) == 2
    again = own("build", "1.17.0", LOADEDMODULES="x/1", LD_LIBRARY_PATH="/another", PATH="/usr/bin:/bin:/mine")
    assert (again.returncode, own.rows) == (0, rows)


@pytest.mark.integration
def test_what_a_modulefile_prints_enters_no_image(own: Site) -> None:
    assert own("build", "1.17.0").returncode == 0
    rows = own.rows
    talking = own.folder / "talking" / "init" / "bash"
    talking.parent.mkdir(parents=True)
    talking.write_text(
        f'. {STAND_IN}/init/bash\neval "silent_$(declare -f module)"\n'
        "module() { echo 'This module is deprecated, see the user guide'; silent_module \"$@\"; }\n"
    )
    again = own("build", "1.17.0", MODULESHOME=str(talking.parents[1]))
    assert (again.returncode, own.rows) == (0, rows), again.stderr


@pytest.mark.integration
def test_another_ucx_than_the_name_says_is_refused(own: Site) -> None:
    (own.folder / "modulefiles" / "ucx" / "1.18.0").write_text(
        f"#%Module1.0\nprepend-path LD_LIBRARY_PATH {own.libraries['1.17.0']}\n"
    )
    wrong = own("build", "1.18.0")
    assert wrong.returncode == 3
    assert "UCX 1.18.0 was to be built, the library says 1.17.0" in wrong.stderr
    missing = own("build", "1.22.0")
    assert (missing.returncode, missing.stderr.count("\n")) == (3, 1)
    assert "module ucx/1.22.0 can't be loaded; load lines written to " in missing.stderr
    assert not (own.folder / "images.lock.toml").exists()


def test_without_the_module_command_the_load_lines_are_written(gpubench: Run, tmp_path: Path) -> None:
    done = gpubench(
        *("images", "build", "1.8.0", "--site", "summit", "--out", "scripts"),
        *("--set", f"paths.images={tmp_path / 'images'}"),
        env={"MODULESHOME": "", "BASH_ENV": ""},
    )
    assert (done.returncode, done.stderr.count("\n")) == (5, 1)
    assert "there is no module command on" in done.stderr
    assert "load lines written to scripts/summit-1.8.0/load.sh" in done.stderr
    text = (tmp_path / "scripts" / "summit-1.8.0" / "load.sh").read_text()
    assert "module load gcc/7.4.0 ||" in text
    assert not (tmp_path / "images.lock.toml").exists()


@pytest.mark.integration
def test_a_cluster_runs_on_modules_until_they_change(own: Site) -> None:
    assert own("build", "1.19.0").returncode == 0
    listed = own.gpubench("images", "list", "--site", "local").stdout
    assert own.rows["1.19.0"].digest in listed
    assert "UCX_HOME" in own("list", "1.19.0").stdout
    measured = own.measured("1.19.0")
    assert measured.returncode == 0, measured.stdout + measured.stderr
    (provenance,) = own.folder.glob("outputs/*/runs/*/provenance.json")
    loaded = [one["ucx"] for one in json.loads(provenance.read_text())["processes"]]
    assert [one["loaded"] for one in loaded] == ["1.19.0"] * 4
    assert {str(Path(one["path"]).parent) for one in loaded} == {own.libraries["1.19.0"]}
    row = own.rows["1.19.0"]
    path = own.folder / "images" / "modules" / f"local-{row.build_id}" / "manifest.json"
    path.write_text(path.read_text().replace('"1.19.0"', '"1.20.0"'))
    changed = own.measured("1.19.0")
    assert changed.returncode == 3
    assert f"{path} isn't the one of image 1.19.0" in changed.stderr
    shutil.rmtree(path.parent)
    gone = own.measured("1.19.0")
    assert (gone.returncode, "can't read" in gone.stderr) == (3, True)


def test_the_runtimes_words_become_the_modules_python_with_what_they_bring(tmp_path: Path) -> None:
    settings = site().image.model_copy(update={"modules": ["a b/{ucx}"], "prefix": str(tmp_path / "o'neill & {ucx}")})
    text = render_modules("bench", settings, "1.17.0", resources.texts("templates"))
    load = tmp_path / "load it.sh"
    load.write_text(text)
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "1.17.0").write_text("setenv WHO modules and more\n")
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys; print(os.environ['WHO'], os.environ['LD_LIBRARY_PATH'], sys.argv[1:], os.getpid())"
    )
    python = shutil.which("python3") or ""
    one = image("1.17.0").model_copy(update={"kind": "modules", "reference": str(load), "python": python})
    runtime = RUNTIMES["modules"]
    line = command_line([*runtime.prefix(ImagePlace()), *runtime.command(one, [str(program), "an argument"])])
    started = subprocess.Popen(
        ["bash", "-c", f"exec {line}"],
        env={"PATH": "/usr/bin:/bin", "MODULESHOME": str(STAND_IN), "MODULEPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    said, _ = started.communicate(timeout=150)
    # The process that was started is Python itself: a signal reaches it.
    assert said == f"modules and more {tmp_path}/o'neill & 1.17.0/lib ['an argument'] {started.pid}\n"
