"""An ordinary user's campaign on this machine, under the umasks that sites set, with another user on it."""

import json
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpubench.node.admission import VARIABLE, environment
from tests.cli.campaigns import campaign_in, cluster_processes, nothing_left, until, words, write_suite
from tests.conftest import GPUBENCH, need, own_queue, plain_environment
from tests.slurm.campaigns import BECOME, copy_images
from tests.slurm.cluster import OTHER_USER

pytestmark = pytest.mark.system

SOMEBODY_ELSE = 12345
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def set_traps(temporary: Path, precious: Path) -> dict[str, int]:
    """What somebody else may put under names that gpubench's begin with; what is there, with its owner."""
    (temporary / "gpubench-0123456789ab-0-abcdefgh").symlink_to(precious)
    theirs = temporary / "gpubench-aaaaaaaaaaaa-0-abcdefgh"
    theirs.mkdir()
    (theirs / ".held").write_bytes(BOOT_ID.read_bytes())
    (theirs / "link").symlink_to(precious)
    os.mkfifo(temporary / "gpubench-bbbbbbbbbbbb-0-abcdefgh")
    for path in [*temporary.iterdir(), *theirs.iterdir()]:
        os.chown(path, SOMEBODY_ELSE, SOMEBODY_ELSE, follow_symlinks=False)
    return there(temporary)


def there(directory: Path) -> dict[str, int]:
    return {str(path.relative_to(directory)): path.lstat().st_uid for path in directory.rglob("*")}


@pytest.fixture
def base() -> Iterator[Path]:
    """A directory that everybody may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="gb-ordinary-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("umask", [pytest.param("077", marks=pytest.mark.long), "002"])
def test_what_an_ordinary_user_runs_here_is_writable_for_nobody_else_and_trusts_no_name_in_tmp(
    umask: str, base: Path
) -> None:
    need(os.geteuid() == 0, "root, to become two other users")
    copy_images(base / "cache")
    home, temporary = base / "home", base / "tmp"
    for path in (home, temporary, home / "precious"):
        path.mkdir()
    temporary.chmod(0o1777)
    for name in ("thesis", ".held"):
        (home / "precious" / name).write_bytes(BOOT_ID.read_bytes())
    suite = write_suite(home, reps=60)
    for path in [home, *home.rglob("*")]:
        shutil.chown(path, OTHER_USER, "nogroup")
    traps = set_traps(temporary, home / "precious")
    env = {**own_queue(home), "HOME": str(home), "USER": OTHER_USER, "TMPDIR": str(temporary)}
    env = plain_environment({**env, "XDG_CACHE_HOME": str(base / "cache"), "XDG_STATE_HOME": str(home / "state")})
    under = ["bash", "-c", f'umask {umask} && exec "$@"', "bash", *BECOME, str(GPUBENCH)]

    def command(*more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*under, *more], cwd=home, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    with command(*words(suite, "--blocks", "1", "--nodes", "2", "--outputs", "outputs")) as bench:
        until(lambda: bench.poll() is not None or [*home.glob("outputs/*/runs/.rendezvous-*")], "a run")
        assert bench.poll() is None, bench.communicate()[0]
        campaign = campaign_in(home)
        (meeting,) = campaign.glob("runs/.rendezvous-*")
        assert of(meeting) == 0o600
        token = json.loads(meeting.read_text())["token"]
        secrets = [token, environment("tcp", token)[VARIABLE].partition(":")[2]]
        lines = until(lambda: [one for one in cluster_processes(campaign).values() if "worker" in one], "a worker")
        assert not [line for line in lines if any(secret in line for secret in secrets)]
        ours = [path for path in temporary.glob("gpubench-*") if path.lstat().st_uid not in (0, SOMEBODY_ELSE)]
        assert ours
        assert {of(path) for path in ours} == {0o700}
        said, _ = bench.communicate(timeout=600)
        assert bench.returncode == 0, said
    with command("results", "export", "csv", str(campaign), "mine.csv") as export:
        said, _ = export.communicate(timeout=300)
        assert export.returncode == 0, said
    paths = [path for path in home.rglob("*") if not path.is_symlink() and home / "precious" not in path.parents]
    made = [path for path in paths if path.lstat().st_mtime > suite.stat().st_mtime]
    assert not [path for path in made if of(path) & 0o002]
    shown = [path for path in made if path.is_file() and of(path) & 0o044]
    assert bool(shown) == (umask == "002")
    assert not [path for path in shown if any(secret.encode() in path.read_bytes() for secret in secrets)]
    assert there(temporary) == traps
    assert sorted(path.name for path in (home / "precious").iterdir()) == [".held", "thesis"]
    nothing_left(lambda: cluster_processes(campaign))
