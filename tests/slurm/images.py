"""A small squashfs image: a shell, a few tools and this Python with its standard library."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.conftest import need

_TOOLS = ("bash", "cat", "env", "ls", "sleep", "touch", "true")


def make_image(work: Path, image: Path, *, environment: str = "", directory: str = "") -> Path:
    """Make ``image`` by way of a root file system below ``work``.

    ``environment`` and ``directory`` stand where enroot leaves an image's ENV and WORKDIR.
    """
    need(bool(shutil.which("ch-run") and shutil.which("mksquashfs")), "charliecloud-runtime and squashfs-tools")
    root = work / "root"
    for name in ("dev", "etc", "proc", "sys", "tmp", "usr/bin", "root/rundir"):
        (root / name).mkdir(parents=True)
    library = Path(sysconfig.get_path("stdlib"))
    ignored = shutil.ignore_patterns("site-packages", "test", "idlelib", "__pycache__", "config-*", "ensurepip")
    shutil.copytree(library, root / library.relative_to("/"), ignore=ignored)
    python = Path(sys.base_prefix) / "bin" / f"python{sysconfig.get_python_version()}"
    tools = [Path(shutil.which(tool) or "") for tool in _TOOLS]
    extensions = list((library / "lib-dynload").glob("*.so"))
    linked = subprocess.run(["ldd", python, *tools, *extensions], capture_output=True, text=True, check=True).stdout
    libraries = {word for word in linked.split() if word.startswith("/") and not word.endswith(":")}
    for path in [python, *map(Path, sorted(libraries))]:
        inside = root / path.relative_to("/")
        inside.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, inside)
    for tool in tools:
        shutil.copy(tool, root / "usr/bin" / tool.name)
    (root / "usr/bin/python3").symlink_to(python)
    (root / "bin").symlink_to("usr/bin")
    (root / "etc/environment").write_text(environment)
    (root / "etc/rc").write_text(f'cd "{directory}" && unset OLDPWD || exit 1\n' if directory else "")
    subprocess.run(
        ["mksquashfs", root, image, "-quiet", "-no-progress", "-comp", "lzo", "-noD"], check=True, stdout=sys.stderr
    )
    return image
