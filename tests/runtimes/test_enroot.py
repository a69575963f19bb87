"""Containers of enroot the way a job script starts them: the command is a stand-in, its mounts and images are real."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpubench import resources
from gpubench.errors import UsageError
from gpubench.model.image import Image
from gpubench.render.environment import command_line, environment
from gpubench.runtimes import RUNTIMES, ImagePlace
from tests.conftest import ROOT, need
from tests.slurm.images import make_image

ENROOT = RUNTIMES["enroot"]
PASSED = ("GPUBENCH_STOP_AT_EOF", "LANG", "OUTDIR", "SCRATCHDIR")
NAME = "gpubench-1234567890123456"
STOPPABLE = (
    "import signal, sys, time\nfrom pathlib import Path\n"
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit(42))\n(Path('../..') / 'ready').touch()\ntime.sleep(60)\n"
)


@pytest.fixture(scope="session")
def squashfs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need(os.geteuid() == 0, "root, for mounts")
    work = tmp_path_factory.mktemp("image")
    return make_image(work, work / "image.sqsh", environment="UCX_TLS=of-the-image\nLANG=of-the-image\n", directory="/")


class Job:
    """A job's directory with the lines of a job script that start a container, and the end of that script."""

    def __init__(self, above: Path, image: Path, place: ImagePlace) -> None:
        self.campaign = above / "a \\ campaign"
        self.directory = self.campaign / "jobs" / "j001"
        self.scratch = above / "scratch of the node"
        self.state = above / "state"
        for path in (self.directory, self.scratch, self.state):
            path.mkdir(parents=True)
        (self.campaign / "node.pyz").touch()
        facts = {"kind": "squashfs", "id": "sha256:1234567890123456789", "ucx_spec": "1", "ucx_version": "1"}
        self.image = Image(
            **facts, binding="none", python="/usr/bin/python3", env={}, manifest="m", reference=str(image)
        )
        self.place = place

    def start(self, program: str, *, leave: bool = True, **env: str) -> subprocess.Popen[str]:
        (self.directory / "program.py").write_text(program)
        template = environment(resources.job_templates()).get_template(ENROOT.TEMPLATE).render()
        command = command_line(ENROOT.command(self.image, ["program.py", "an argument"]))
        (self.directory / "job.sh").write_text(
            f'launch() {{ "$@"; }}\n{template}\nin_image=({command_line(ENROOT.prefix(self.place))})\n'
            f'"${{in_image[@]}}" {command}\ncode=$?\n{"leave" if leave else ""}\nexit "$code"\n'
        )
        tools = {
            "PATH": f"{ROOT / 'tests' / 'stand_ins'}:{os.environ['PATH']}",
            "STAND_IN_ENROOT_STATE": str(self.state),
        }
        return subprocess.Popen(
            ["bash", "job.sh"],
            cwd=self.directory,
            env={**tools, "OUTDIR": str(self.campaign), "SCRATCHDIR": str(self.scratch), **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, program: str, *, leave: bool = True, **env: str) -> tuple[str, int]:
        with self.start(program, leave=leave, **env) as started:
            said, errors = started.communicate(timeout=150)
        return said or errors, started.returncode

    @property
    def done(self) -> list[str]:
        """What became of containers: create, remove."""
        path = self.state / "containers"
        return [line.split()[1] for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def containers(self) -> list[str]:
        return [path.name for path in self.scratch.glob("gpubench-enroot-*/containers/*")]


@pytest.fixture
def job(tmp_path: Path, squashfs: Path) -> Job:
    return Job(tmp_path, squashfs, ImagePlace(passed=PASSED))


@pytest.mark.system
def test_the_program_runs_in_the_image_by_its_own_paths_and_its_exit_code_comes_back(job: Job) -> None:
    program = (
        "import os, sys\nprint(sys.argv, os.getcwd(), os.path.exists('/home'), os.getuid())\n"
        "open(os.environ['OUTDIR'] + '/written', 'w')\nopen(os.environ['SCRATCHDIR'] + '/written', 'w')\n"
        "try:\n    open('../written', 'w')\nexcept OSError as error:\n    print(error.strerror)\n"
        "sys.exit(40)"
    )
    said, code = job.run(program)
    assert said == f"['program.py', 'an argument'] {job.directory} False {os.getuid()}\nRead-only file system\n"
    assert (code, job.done, job.containers) == (40, ["create", "remove"], [])
    assert (job.campaign / "written").exists()
    assert (job.scratch / "written").exists()


@pytest.mark.system
def test_the_jobs_variables_beat_the_images_and_what_is_not_set_stays_so(job: Job) -> None:
    program = (
        "import os\nprint(*(os.environ.get(name) for name in ('LANG', 'UCX_TLS', 'GPUBENCH_STOP_AT_EOF', 'OTHER')))"
    )
    assert job.run(program, LANG="of  the job $(date)", OTHER="x") == (
        "of  the job $(date) of-the-image None None\n",
        0,
    )


@pytest.mark.system
def test_a_container_is_kept_for_the_next_run_and_one_that_is_not_whole_is_made_anew(job: Job) -> None:
    for _ in range(2):
        assert job.run("print('in')", leave=False) == ("in\n", 0)
    assert (job.done, job.containers) == (["create"], [NAME])
    (lock,) = job.scratch.glob(f"gpubench-enroot-*/{NAME}")
    lock.write_text("")  # what a killed unpacking leaves
    assert job.run("print('in')") == ("in\n", 0)
    assert job.done == ["create", "remove", "create", "remove"]


@pytest.mark.system
def test_jobs_at_once_share_a_container_that_the_last_one_removes(job: Job) -> None:
    program = "import time\nfrom pathlib import Path\ntime.sleep(0.5)\nprint(Path('/usr/bin/python3').exists())"
    both = [job.start(program), job.start(program)]
    assert [each.communicate(timeout=150)[0] for each in both] == ["True\n", "True\n"]
    assert job.done.count("create") == job.done.count("remove")
    assert job.containers == []


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_shell_around_it_reaches_the_program(job: Job, number: signal.Signals) -> None:
    with job.start(STOPPABLE, leave=False) as started:
        deadline = time.monotonic() + 150
        while not (job.campaign / "ready").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        (shell,) = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
        os.kill(int(shell), number)
        assert started.wait(timeout=150) == 42


@pytest.mark.system
def test_a_site_mounts_its_own_directories_and_may_make_the_root_writable(tmp_path: Path, squashfs: Path) -> None:
    (tmp_path / "data sets").mkdir()
    (tmp_path / "data sets" / "file").write_text("of the site")
    job = Job(
        tmp_path,
        squashfs,
        ImagePlace(passed=PASSED, mounts=[f"{tmp_path / 'data sets'}:/my data:ro"], options=["--rw"]),
    )
    program = (
        "open('/opt-of-mine', 'w')\nprint(open('/my data/file').read())\n"
        "try:\n    open('/my data/new', 'w')\nexcept OSError as error:\n    print(error.strerror)"
    )
    assert job.run(program) == ("of the site\nRead-only file system\n", 0)


@pytest.mark.system
def test_an_image_that_is_not_there_is_said_by_enroot_and_leaves_nothing(job: Job) -> None:
    job.image = job.image.model_copy(update={"reference": "/nope.sqsh"})
    said, code = job.run("")
    assert (said, code) == ("[ERROR] No such file or directory: /nope.sqsh\n", 1)
    assert job.containers == []


@pytest.mark.system
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--nope"], "Invalid option: --nope"),
        (["--mount=/a b:/c"], "Invalid argument: /a b:/c"),
        (["--mount=/a:/b:none:bind,wr"], "the stand-in knows no mount options like these"),
        (["--mount=/nope:/b"], "failed to mount: /nope at "),
        (["--env=2=x"], "Invalid argument: 2=x"),
    ],
)
def test_the_stand_in_refuses_what_enroot_does_not_know(
    tmp_path: Path, squashfs: Path, options: list[str], said: str
) -> None:
    job = Job(tmp_path, squashfs, ImagePlace(passed=PASSED, options=options))
    errors, code = job.run("")
    assert said in errors
    assert code == 1


@pytest.mark.parametrize("mount", ["/data:/data:rw", "/data", ":/data", "/data:", "/a:/b:ro:x"])
def test_a_mount_that_enroot_cannot_make_is_refused_in_one_line(mount: str) -> None:
    with pytest.raises(UsageError, match=f"can't mount '{mount}'; write HOST:INSIDE"):
        ENROOT.prefix(ImagePlace(mounts=[mount]))


@pytest.mark.parametrize("how", ["a link", "open to others", "somebody else's"])
def test_containers_lie_only_where_nobody_else_can_write(job: Job, tmp_path: Path, how: str) -> None:
    home = job.scratch / f"gpubench-enroot-{os.getuid()}"
    if how == "a link":
        (tmp_path / "theirs").mkdir(mode=0o700)
        home.symlink_to(tmp_path / "theirs")
    else:
        home.mkdir(mode=0o700)
        home.chmod(0o755 if how == "open to others" else 0o700)
    if how == "somebody else's":
        need(os.geteuid() == 0, "root, to make a directory of somebody else's")
        os.chown(home, 65534, -1)
    said, code = job.run("print('in')")
    assert code == 40
    assert f"gpubench: {home} on {os.uname().nodename} is no directory that only " in said
    assert not list(home.glob("*"))


def test_containers_lie_also_where_new_directories_inherit_the_group(job: Job) -> None:
    job.scratch.chmod(0o2770)  # a project's directory: what is made in it has mode 2700
    assert job.run("print('in')") == ("in\n", 0)


def test_a_scratch_directory_that_cannot_be_made_ends_the_job_with_the_systems_words(job: Job, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said, code = job.run("print('in')", SCRATCHDIR=str(tmp_path / "file" / "scratch"))
    assert code == 40
    assert "Not a directory" in said
    assert "only" not in said


def test_the_template_passes_shellcheck() -> None:
    text = environment(resources.job_templates()).get_template(ENROOT.TEMPLATE).render()
    place, inner, remove = [part.partition("\nSH\n")[0] for part in text.split("<<'SH'\n")[1:]]
    for script in (text, place + inner, place + remove):
        checked = subprocess.run(
            [Path(sys.executable).with_name("shellcheck"), "-s", "bash", "-e", "SC2034,SC2154", "-"],
            input=script,
            capture_output=True,
            text=True,
            check=False,
        )
        assert checked.stdout == ""
