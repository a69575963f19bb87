"""Small squashfs images: a shell, a few tools and this Python with its standard library; one has Dask and UCX too."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from tests.conftest import need

_TOOLS = ("bash", "cat", "env", "ls", "sh", "sleep", "touch", "true")
_NEEDLESS = (
    *("nvidia", "pyarrow", "llvmlite", "numba", "numba_cuda", "pandas", "pytz", "tzdata", "kubernetes", "parsl"),
    *("dask_cuda", "oauthlib", "websocket", "tpchgen-cli", "include", "tests", "*.h", "*.pyi"),
)
"""Most files of the stack, none of which a run on CPUs imports: each container of a test would unpack them."""
_NEEDLESS_OF_PYTHON = (
    *("site-packages", "test", "tests", "idlelib", "lib2to3", "tkinter", "turtledemo", "pydoc_data", "ensurepip"),
    *("config-*", "*.opt-?.pyc"),
)
_NEEDLESS_OF_UCX = ("*.a", "ucx_perftest", "io_demo", "libucx_perftest*", "include", "cmake", "pkgconfig")


@dataclasses.dataclass(frozen=True)
class Stack:
    """A venv on this Python and a folder with libucx, put where gpubench's own images have them, and their manifest."""

    venv: Path
    ucx: Path
    manifest: str


def make_image(
    work: Path, image: Path, *, environment: str = "", directory: str = "", stack: Stack | None = None
) -> Path:
    """Make ``image`` by way of a root file system below ``work``.

    ``environment`` and ``directory`` stand where enroot leaves an image's ENV and WORKDIR.
    """
    need(bool(shutil.which("ch-run") and shutil.which("mksquashfs")), "charliecloud-runtime and squashfs-tools")
    root = work / "root"
    for name in ("dev", "etc", "proc", "sys", "tmp", "usr/bin", "root/rundir"):
        (root / name).mkdir(parents=True)
    tools = [Path(shutil.which(tool) or "") for tool in _TOOLS]
    add_python(root, [*tools, *(_add_stack(root, stack) if stack else [])])
    for tool in tools:
        shutil.copy(tool, root / "usr/bin" / tool.name)
    (root / "bin").symlink_to("usr/bin")
    for name in ("passwd", "group", "hosts", "resolv.conf"):  # ch-run mounts the node's
        (root / "etc" / name).touch()
    (root / "etc/environment").write_text(environment)
    (root / "etc/rc").write_text(f'cd "{directory}" && unset OLDPWD || exit 1\n' if directory else "")
    subprocess.run(
        ["mksquashfs", root, image, "-quiet", "-no-progress", "-comp", "lzo", "-noD", "-noF", "-noI", "-noX"],
        check=True,
        stdout=sys.stderr,
    )
    return image


def add_python(root: Path, others: Iterable[Path] = ()) -> None:
    """This interpreter as ``/usr/bin/python3``, its standard library, and the C libraries of these and ``others``."""
    library = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(library, root / library.relative_to("/"), ignore=shutil.ignore_patterns(*_NEEDLESS_OF_PYTHON))
    python = Path(sys.base_prefix) / "bin" / f"python{sysconfig.get_python_version()}"
    binaries = [python, *others, *(library / "lib-dynload").glob("*.so")]
    linked = subprocess.run(["ldd", *binaries], capture_output=True, text=True, check=True).stdout
    own = f"{root}/"
    libraries = {word for word in linked.split() if word[0] == "/" and word[-1] != ":" and not word.startswith(own)}
    for path in [python, *map(Path, sorted(libraries))]:
        inside = root / path.relative_to("/")
        inside.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, inside)
    (root / "usr/bin").mkdir(parents=True, exist_ok=True)
    (root / "usr/bin/python3").symlink_to(python)


def _add_stack(root: Path, stack: Stack) -> list[Path]:
    """Some of its libraries, which need others of the system."""
    home = root / "opt/gpubench"
    needless, needless_of_ucx = shutil.ignore_patterns(*_NEEDLESS), shutil.ignore_patterns(*_NEEDLESS_OF_UCX)
    shutil.copytree(stack.venv, home / "stack", symlinks=True, copy_function=link_or_copy, ignore=needless)
    shutil.copytree(
        stack.ucx / "libucx", home / "ucx", symlinks=True, copy_function=link_or_copy, ignore=needless_of_ucx
    )
    bundled = next(stack.ucx.glob("libucx*.libs"))
    shutil.copytree(bundled, home / bundled.name)
    (root / "gpubench").mkdir()
    (root / "gpubench/manifest.json").write_text(stack.manifest)
    return list(home.glob("stack/lib/python3*/site-packages/ucxx/_lib/*.so"))


def link_or_copy(source: str, target: str) -> None:
    """For ``shutil.copytree``: hard links where both are on one file system."""
    if Path(source).is_symlink():
        Path(target).symlink_to(Path(source).readlink())
        return
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
