"""What every runtime of squashfs images has to do alike, the way a job script starts it, and what each does alone.

Enroot's command is a stand-in whose mounts and images are real; Apptainer is the real one.
"""

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
from gpubench.render.context import DRIVER
from gpubench.render.jinja import environment
from gpubench.render.shell import command_line
from gpubench.runtimes import RUNTIMES, ImagePlace
from tests.conftest import ROOT, in_long_tests, need
from tests.importing.nodes import REPOSITORY, Importer, image_files, item
from tests.importing.registry import Registry
from tests.slurm.images import add_python, make_image

PASSED = {
    "enroot": ("GPUBENCH_STOP_AT_EOF", "LANG", "OUTDIR", "SCRATCHDIR"),
    "apptainer": ("GPUBENCH_RANK", "OUTDIR", "SCRATCHDIR"),
}
NAME = "gpubench-1234567890123456"
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
    sys.exit(42)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, stop)
Path("ready").touch()
time.sleep(60)
"""
AT_WORK = """
import os, sys
print(sys.argv, os.getcwd(), os.path.exists('/home') and os.listdir('/home') or False, os.getuid())
for name in ('OUTDIR', 'SCRATCHDIR'):
    print(os.environ[name])
    open(os.environ[name] + '/written', 'w').write('x')
try:
    open('../written', 'w')
except OSError as error:
    print(error.strerror)
sys.exit(40)
"""


@pytest.fixture(scope="session")
def of_enroot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need(os.geteuid() == 0, "root, for mounts")
    work = tmp_path_factory.mktemp("image")
    return make_image(work, work / "image.sqsh", environment="UCX_TLS=of-the-image\nLANG=of-the-image\n", directory="/")


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
def of_apptainer(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
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
        variables = [f"{name}=of the image" for name in ("STACK", "GPUBENCH_RANK", "LD_LIBRARY_PATH")]
        digest = registry.push(REPOSITORY, "tree", image_files(), tree=tree, environment=variables)
        code, said = importer.run(item(f"http://{registry.host}", digest))
    assert code == 0, said
    return importer.check(digest).path


class Job:
    """A job's directory with the lines of a job script that start a container, and the end of that script."""

    def __init__(self, above: Path, runtime: str, image: Path, *options: str, mounts: tuple[str, ...] = ()) -> None:
        self.name, self.runtime = runtime, RUNTIMES[runtime]
        self.place = ImagePlace(passed=PASSED[runtime], mounts=[*mounts], options=[*options])
        self.campaign = above / ("a \\ campaign" if runtime == "enroot" else "a campaign")
        self.directory = self.campaign / "jobs" / "j001"
        self.scratch, self.state = above / "scratch of the node", above / "state"
        for path in (self.directory, self.scratch, self.state):
            path.mkdir(parents=True)
        (self.campaign / "node.pyz").touch()
        facts = {"kind": "squashfs", "id": "sha256:1234567890123456789", "ucx_spec": "1", "ucx_version": "1"}
        facts |= {"binding": "none", "python": "/usr/bin/python3", "manifest": "m", "reference": str(image)}
        self.image = Image(**facts, env={})

    def start(self, program: str, *, leave: bool = True, **env: str) -> subprocess.Popen[str]:
        template = environment(resources.job_templates()).get_template(self.runtime.TEMPLATE).render()
        command = command_line(self.runtime.command(self.image, ["program.py", "an argument"]))
        script = f'launch() {{ "$@"; }}\n{template}\nin_image=({command_line(self.runtime.prefix(self.place))})\n'
        if self.name == "enroot":  # the last line removes the container
            script += f'"${{in_image[@]}}" {command}\ncode=$?\n{"leave" if leave else ""}\nexit "$code"\n'
        else:
            script += f'exec "${{in_image[@]}}" {command}\n'
        for path, text in ((self.directory / "program.py", program), (self.directory / "job.sh", script)):
            if not path.exists() or path.read_text() != text:  # the one that was started before may still read it
                path.write_text(text)
        tools = f"{ROOT / 'tests' / 'stand_ins'}:" if self.name == "enroot" else ""
        own = {"PATH": tools + os.environ["PATH"], "STAND_IN_ENROOT_STATE": str(self.state)}
        return subprocess.Popen(
            ["bash", "job.sh"],
            cwd=self.directory,
            env={**own, "OUTDIR": str(self.campaign), "SCRATCHDIR": str(self.scratch), **env},
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

    def shell(self, started: subprocess.Popen[str]) -> int:
        """The process that Slurm would signal: what runs in the container's place."""
        if self.name == "apptainer":
            return started.pid
        (child,) = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
        return int(child)

    @property
    def done(self) -> list[str]:
        """What became of containers of enroot: create, remove."""
        path = self.state / "containers"
        return [line.split()[1] for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def containers(self) -> list[str]:
        return [path.name for path in self.scratch.glob("gpubench-enroot-*/containers/*")]


@pytest.fixture
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Job:
    """Of enroot, unless the test names another one."""
    runtime, image = getattr(request, "param", ("enroot", "of_enroot"))
    return Job(tmp_path, runtime, request.getfixturevalue(image))


BOTH = [
    pytest.param(("enroot", "of_enroot"), id="enroot"),
    pytest.param(("apptainer", "of_apptainer"), id="apptainer"),
]
IMPORTED = pytest.param(("apptainer", "imported"), id="imported by apptainer")
alike = pytest.mark.parametrize("job", BOTH, indirect=True)
by_apptainer = pytest.mark.parametrize("job", BOTH[1:], indirect=True)


@pytest.mark.system
@pytest.mark.parametrize("job", [*BOTH, IMPORTED], indirect=True)
def test_the_program_runs_in_the_image_by_its_own_paths_and_its_exit_code_comes_back(job: Job) -> None:
    said, code = job.run(AT_WORK)
    assert said.splitlines() == [
        f"['program.py', 'an argument'] {job.directory} False {os.getuid()}",
        *(str(job.campaign), str(job.scratch), "Read-only file system"),
    ]
    assert (code, job.containers) == (40, [])
    assert job.done == (["create", "remove"] if job.name == "enroot" else [])
    assert [(path / "written").read_text() for path in (job.campaign, job.scratch)] == ["x", "x"]
    assert (job.campaign / "written").stat().st_uid == os.getuid()


@pytest.mark.system
@alike
def test_a_node_where_the_home_directory_cant_be_written_starts_containers(job: Job) -> None:
    assert job.run("print('started')", HOME="/proc/nowhere") == ("started\n", 0)


@pytest.mark.system
@alike
def test_two_jobs_at_once_share_a_node_and_an_image(job: Job) -> None:
    program = "import time\nfrom pathlib import Path\ntime.sleep(0.5)\nprint(Path('/usr/bin/python3').exists())"
    both = [job.start(program), job.start(program)]
    ended = [(*each.communicate(timeout=150), each.returncode) for each in both]
    assert [(said, code) for said, _, code in ended] == [("True\n", 0), ("True\n", 0)], ended
    assert job.done.count("create") == job.done.count("remove")
    assert job.containers == []


@pytest.mark.system
@alike
@pytest.mark.parametrize("number", [signal.SIGTERM, *in_long_tests(signal.SIGINT, signal.SIGHUP)])
def test_a_signal_to_the_shell_around_it_reaches_the_program(job: Job, number: signal.Signals) -> None:
    signalled(job, number, group=False)


@pytest.mark.system
@by_apptainer
def test_a_signal_to_everybody_leaves_the_program_its_files_until_it_has_ended(job: Job) -> None:
    """Slurm and Ctrl-C signal everybody, Apptainer too: it stays until the program inside needs its files no more."""
    signalled(job, signal.SIGTERM, group=True)


def signalled(job: Job, number: signal.Signals, *, group: bool) -> None:
    with job.start(STOPPABLE, leave=False) as started:
        deadline = time.monotonic() + 150
        while not (job.campaign / "ready").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        (os.killpg if group else os.kill)(job.shell(started), number)
        said = started.communicate(timeout=150)
    assert (job.campaign / "stopped").exists(), said
    assert started.returncode == 42, said


@pytest.mark.system
@pytest.mark.parametrize(
    ("runtime", "image", "options"), [("enroot", "of_enroot", ["--rw"]), ("apptainer", "of_apptainer", [])]
)
def test_a_site_mounts_its_own_directories(
    request: pytest.FixtureRequest, tmp_path: Path, runtime: str, image: str, options: list[str]
) -> None:
    (tmp_path / "data sets").mkdir()
    (tmp_path / "data sets" / "file").write_text("of the site")
    mounts = (f"{tmp_path / 'data sets'}:/mnt:ro",)
    job = Job(tmp_path, runtime, request.getfixturevalue(image), *options, mounts=mounts)
    program = (
        "print(open('/mnt/file').read())\n"
        "try:\n    open('/mnt/new', 'w')\nexcept OSError as error:\n    print(error.strerror)\n"
    )
    if options:  # and may make the root writable
        program += "open('/opt-of-mine', 'w')"
    assert job.run(program) == ("of the site\nRead-only file system\n", 0)


@pytest.mark.parametrize("mount", ["/data", ":/data", "/data:"])
@pytest.mark.parametrize(
    ("runtime", "own"), [("enroot", ("/data:/data:rw", "/a:/b:ro:x")), ("apptainer", ("/data:/data:rx", "/a,b:/c"))]
)
def test_a_mount_that_cannot_be_made_is_refused_in_one_line(runtime: str, own: tuple[str, ...], mount: str) -> None:
    for wrong in (mount, *own):
        with pytest.raises(UsageError, match=f"can't mount '{wrong}'; write HOST:INSIDE"):
            RUNTIMES[runtime].prefix(ImagePlace(mounts=[wrong]))


@pytest.mark.parametrize("runtime", ["enroot", "apptainer"])
def test_the_template_passes_shellcheck(runtime: str) -> None:
    text = environment(resources.job_templates()).get_template(RUNTIMES[runtime].TEMPLATE).render()
    first, *inner = [part.partition("\nSH\n")[0] for part in text.split("<<'SH'\n")[1:]]
    for script in (text, *(first + one for one in inner or [""])):  # enroot's have the first in common
        checked = subprocess.run(
            [Path(sys.executable).with_name("shellcheck"), "-s", "bash", "-e", "SC2034,SC2154", "-"],
            input=script,
            capture_output=True,
            text=True,
            check=False,
        )
        assert checked.stdout == ""


def test_gpus_are_asked_for_where_the_site_may_have_some() -> None:
    prefixes = [RUNTIMES["apptainer"].prefix(ImagePlace(device=device)) for device in ("cpu", "gpu", "auto")]
    assert ["--nv" in prefix for prefix in prefixes] == [False, True, True]


@pytest.mark.system
def test_of_enroot_the_jobs_variables_beat_the_images_and_what_is_not_set_stays_so(job: Job) -> None:
    names = ("LANG", "UCX_TLS", "GPUBENCH_STOP_AT_EOF", "OTHER")
    said, code = job.run(
        f"import os\nprint(*(os.environ.get(name) for name in {names}))", LANG="of  the job $(date)", OTHER="x"
    )
    assert (said, code) == ("of  the job $(date) of-the-image None None\n", 0)


@pytest.mark.system
@pytest.mark.parametrize("job", [BOTH[1], IMPORTED], indirect=True)
def test_of_the_hosts_environment_only_the_passed_variables_arrive_in_apptainer(job: Job) -> None:
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
        assert "/.singularity.d/libs" in DRIVER.split(":")  # of images that gpubench builds: there --nv binds libraries
        others -= {"STACK", "LD_LIBRARY_PATH"}
    assert others - OF_APPTAINER == {"GPUBENCH_RANK", "OUTDIR", "PATH", "SCRATCHDIR"}


@pytest.mark.system
@by_apptainer
def test_in_apptainer_processes_and_shared_memory_are_the_nodes_and_results_go_elsewhere(
    job: Job, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    program = (
        "import os\nfrom pathlib import Path\n(Path(os.environ['OUTDIR']) / 'written').touch()\n"
        f"print(Path('/proc/{os.getpid()}/cmdline').exists(), Path('/dev/shm').is_dir())"
    )
    assert job.run(program, OUTDIR=str(elsewhere)) == ("True True\n", 0)
    assert (elsewhere / "written").exists()
    assert not (job.campaign / "written").exists()


@pytest.mark.system
@by_apptainer
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
def test_a_container_of_enroot_is_kept_for_the_next_run_and_one_that_is_not_whole_is_made_anew(job: Job) -> None:
    for _ in range(2):
        assert job.run("print('in')", leave=False) == ("in\n", 0)
    assert (job.done, job.containers) == (["create"], [NAME])
    (lock,) = job.scratch.glob(f"gpubench-enroot-*/{NAME}")
    lock.write_text("")  # what a killed unpacking leaves
    assert job.run("print('in')") == ("in\n", 0)
    assert job.done == ["create", "remove", "create", "remove"]


@pytest.mark.system
def test_an_image_that_is_not_there_is_said_by_enroot_and_leaves_nothing(job: Job) -> None:
    job.image = job.image.model_copy(update={"reference": "/nope.sqsh"})
    said, code = job.run("")
    assert (said, code) == ("[ERROR] No such file or directory: /nope.sqsh\n", 1)
    assert job.containers == []


@pytest.mark.testbed
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
    tmp_path: Path, of_enroot: Path, options: list[str], said: str
) -> None:
    errors, code = Job(tmp_path, "enroot", of_enroot, *options).run("")
    assert said in errors
    assert code == 1


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
