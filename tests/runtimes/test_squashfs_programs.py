"""Real containers: a squashfs file with a real Python, started by Apptainer as a job script starts it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpubench import resources
from gpubench.errors import UsageError
from gpubench.model.image import Image
from gpubench.render.environment import command_line
from gpubench.runtimes import RUNTIMES, ImagePlace
from tests.conftest import need
from tests.importing.nodes import REPOSITORY, Importer, image_files, item
from tests.importing.registry import Registry
from tests.slurm.images import add_python

PASSED = ("GPUBENCH_RANK", "OUTDIR", "SCRATCHDIR")
OF_APPTAINER = {"HOME", "LANG", "LC_CTYPE", "PROMPT_COMMAND", "PS1", "PWD", "USER"}
"""Names of variables that it sets."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
STOPPABLE = """
import os, signal, sys, time
from pathlib import Path
os.chdir(os.environ["OUTDIR"])
def stop(number, frame):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a second one may come while Python ends; as the node half does
    Path("stopped").touch()
    sys.exit(int(Path("code").read_text()))
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, stop)
Path("ready").touch()
time.sleep(60)
"""


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root file system that holds this interpreter, its standard library and the C libraries that they need."""
    need(shutil.which("apptainer") is not None, "apptainer (bash requirements/apptainer.sh)")
    need(shutil.which("mksquashfs") is not None, "squashfs-tools")
    need(os.access("/dev/fuse", os.R_OK | os.W_OK), "/dev/fuse")
    root = tmp_path_factory.mktemp("root")
    for name in ("dev", "etc", "mnt", "proc", "sys", "tmp", "var/tmp"):
        (root / name).mkdir(parents=True)
    for name in ("passwd", "group", "hosts", "resolv.conf"):
        (root / "etc" / name).touch()
    add_python(root)
    return root


@pytest.fixture(scope="session")
def squashfs(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That tree as it is, in a file."""
    image = tmp_path_factory.mktemp("images") / "image.sqsh"
    subprocess.run(
        ["mksquashfs", tree, image, "-quiet", "-no-progress", "-comp", "lzo", "-noD"], check=True, stdout=sys.stderr
    )
    return image


@pytest.fixture(scope="session")
def imported(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That tree as an image of a registry that sets variables, imported by Apptainer."""
    work = tmp_path_factory.mktemp("imported")
    importer = Importer(work / "node", work / "images", "apptainer")
    with Registry() as registry:
        environment = [f"{name}=of the image" for name in ("STACK", "GPUBENCH_RANK", "LD_LIBRARY_PATH")]
        digest = registry.push(REPOSITORY, "tree", image_files(), tree=tree, environment=environment)
        code, said = importer.run(item(f"http://{registry.host}", digest))
    assert code == 0, said
    return importer.check(digest).path


class Job:
    """A job's directory with the lines of a job script that start a container."""

    def __init__(self, campaign: Path, image: Path, place: ImagePlace) -> None:
        self.runtime = RUNTIMES["apptainer"]
        self.campaign = campaign
        self.directory = campaign / "jobs" / "j001"
        self.directory.mkdir(parents=True)
        self.scratch = campaign.parent / "scratch of the node"
        self.scratch.mkdir(exist_ok=True)
        self.image = Image(
            kind="squashfs",
            id="sha256:1",
            ucx_spec="1",
            ucx_version="1",
            binding="none",
            python="/usr/bin/python3",
            env={},
            manifest="m",
            reference=str(image),
        )
        self.place = place

    def start(self, program: str, **env: str) -> subprocess.Popen[str]:
        (self.campaign / "node.pyz").touch()
        template = resources.texts("templates")[self.runtime.TEMPLATE]
        command = self.runtime.command(self.image, ["program.py", "an argument"])
        script = f"{template}\nin_image=({command_line(self.runtime.prefix(self.place))})\n"
        script += f'exec "${{in_image[@]}}" {command_line(command)}\n'
        for path, text in ((self.directory / "program.py", program), (self.directory / "job.sh", script)):
            if not path.exists() or path.read_text() != text:  # the one that was started before may still read it
                path.write_text(text)
        return subprocess.Popen(
            ["bash", "job.sh"],
            cwd=self.directory,
            env={"PATH": os.environ["PATH"], "OUTDIR": str(self.campaign), "SCRATCHDIR": str(self.scratch), **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, program: str, **env: str) -> tuple[str, int]:
        with self.start(program, **env) as started:
            said, _ = started.communicate(timeout=150)
        return said, started.returncode


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 150
    while not path.exists():
        assert time.monotonic() < deadline, f"no {path.name}"
        time.sleep(0.02)


@pytest.fixture(params=["squashfs", "imported"])
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Job:
    return Job(tmp_path / "a campaign", request.getfixturevalue(request.param), ImagePlace(passed=PASSED))


@pytest.mark.system
def test_the_program_runs_in_the_image_and_its_exit_code_comes_back(job: Job) -> None:
    said, code = job.run(
        "import os, sys\nprint(sys.argv, os.path.exists('/home') and os.listdir('/home'), os.getuid())\nsys.exit(40)"
    )
    assert said.replace("[]", "False") == f"['program.py', 'an argument'] False {os.getuid()}\n"
    assert code == 40


@pytest.mark.system
def test_campaign_and_scratch_are_seen_by_their_own_paths_and_can_be_written(job: Job) -> None:
    said, code = job.run(
        "import os\nfrom pathlib import Path\n"
        "for name in ('OUTDIR', 'SCRATCHDIR'):\n"
        "    print(os.environ[name])\n    (Path(os.environ[name]) / 'written').write_text('x')\n"
        "print(Path.cwd())"
    )
    assert said.splitlines() == [str(path) for path in (job.campaign, job.scratch, job.directory)]
    assert (code, (job.campaign / "written").read_text(), (job.scratch / "written").read_text()) == (0, "x", "x")
    assert (job.campaign / "written").stat().st_uid == os.getuid()


@pytest.mark.system
def test_results_can_be_sent_elsewhere(job: Job, tmp_path: Path) -> None:
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    program = "import os\nfrom pathlib import Path\n(Path(os.environ['OUTDIR']) / 'written').touch()"
    assert job.run(program, OUTDIR=str(elsewhere)) == ("", 0)
    assert (elsewhere / "written").exists()
    assert not (job.campaign / "written").exists()


@pytest.mark.system
def test_of_the_hosts_environment_only_the_passed_variables_arrive(job: Job) -> None:
    said, code = job.run(
        "import os\nprint(*(f'{k}={v}' for k, v in sorted(os.environ.items())), sep='\\n')",
        LD_LIBRARY_PATH="/host/lib",
        LD_PRELOAD="",
        PYTHONPATH="/host/python",
        UCX_TLS="tcp",
        APPTAINERENV_PYTHONPATH="/of/the/user",
        GPUBENCH_RANK="a,b=$HOME 'c'",
    )
    arrived = dict(line.split("=", 1) for line in said.splitlines())
    assert (arrived["GPUBENCH_RANK"], arrived["PATH"], code) == ("a,b=$HOME 'c'", PATH, 0)
    others = {name for name in arrived if not name.startswith(("APPTAINER_", "SINGULARITY_"))}
    assert ("STACK" in arrived) == ("imported" in job.image.reference)
    if "STACK" in arrived:  # the image's own, where Apptainer imported it; its search path for libraries is kept, too
        assert arrived["LD_LIBRARY_PATH"] == "of the image:/.singularity.d/libs"
        others -= {"STACK", "LD_LIBRARY_PATH"}
    assert others - OF_APPTAINER == {"GPUBENCH_RANK", "OUTDIR", "PATH", "SCRATCHDIR"}


@pytest.mark.system
def test_processes_and_shared_memory_are_the_nodes(job: Job) -> None:
    program = (
        f"from pathlib import Path\nprint(Path('/proc/{os.getpid()}/cmdline').exists(), Path('/dev/shm').is_dir())"
    )
    assert job.run(program) == ("True True\n", 0)


@pytest.mark.system
def test_standard_input_arrives_and_its_end_too(job: Job) -> None:
    with job.start(
        "import sys\nprint(repr(sys.stdin.readline()), flush=True)\nprint(repr(sys.stdin.read()))"
    ) as started:
        assert started.stdin is not None
        assert started.stdout is not None
        started.stdin.write("a line\n")
        started.stdin.flush()
        assert started.stdout.readline() == "'a line\\n'\n"
        started.stdin.close()
        assert started.stdout.readline() == "''\n"
        assert started.wait(timeout=150) == 0


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("whole_group", [False, True], ids=["the shell", "everybody"])
def test_a_signal_reaches_the_program_which_ends_by_itself(job: Job, number: signal.Signals, whole_group: bool) -> None:
    (job.campaign / "code").write_text("42")
    with job.start(STOPPABLE) as started:
        wait_for(job.campaign / "ready")
        (os.killpg if whole_group else os.kill)(started.pid, number)
        said, _ = started.communicate(timeout=150)
    # Slurm and Ctrl-C signal everybody, Apptainer too: it stays until the program inside needs its files no more.
    assert (job.campaign / "stopped").exists(), said
    assert started.returncode == 42, said


@pytest.mark.system
def test_two_containers_at_once_share_a_node_and_an_image(job: Job) -> None:
    program = "import time\nfrom pathlib import Path\ntime.sleep(0.5)\nprint(Path('/usr/bin/python3').exists())"
    first, second = job.start(program), job.start(program)
    assert [each.communicate(timeout=150)[0] for each in (first, second)] == ["True\n", "True\n"]
    assert [each.returncode for each in (first, second)] == [0, 0]


@pytest.mark.system
def test_a_site_mounts_its_own_directories(tmp_path: Path, squashfs: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_text("of the site")
    job = Job(tmp_path / "campaign", squashfs, ImagePlace(passed=PASSED, mounts=[f"{tmp_path / 'data'}:/mnt"]))
    assert job.run("print(open('/mnt/file').read())") == ("of the site\n", 0)


@pytest.mark.system
def test_the_campaigns_own_files_are_read_only(job: Job) -> None:
    said, code = job.run("open('written', 'w')")
    assert (said.splitlines()[-1], code) == ("OSError: [Errno 30] Read-only file system: 'written'", 1)


@pytest.mark.parametrize("mount", ["/data:/data:rx", "/data", ":/data", "/data:", "/a,b:/c"])
def test_a_mount_that_apptainer_cannot_make_is_refused_in_one_line(mount: str) -> None:
    with pytest.raises(UsageError, match=f"can't mount '{mount}'; write HOST:INSIDE"):
        RUNTIMES["apptainer"].prefix(ImagePlace(mounts=[mount]))


def test_gpus_are_asked_for_where_the_site_may_have_some() -> None:
    assert ["--nv" in RUNTIMES["apptainer"].prefix(ImagePlace(device=device)) for device in ("cpu", "gpu", "auto")] == [
        False,
        True,
        True,
    ]


def test_the_template_passes_shellcheck() -> None:
    text = resources.texts("templates")[RUNTIMES["apptainer"].TEMPLATE]
    inner = text.partition("<<'SH'\n")[2].partition("\nSH\n")[0]
    for script in (text, inner):
        checked = subprocess.run(
            [Path(sys.executable).with_name("shellcheck"), "-s", "bash", "-e", "SC2034,SC2154", "-"],
            input=script,
            capture_output=True,
            text=True,
            check=False,
        )
        assert checked.stdout == ""
