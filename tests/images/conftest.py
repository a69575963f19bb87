"""One real set of images for all integration tests, built the hard way: a killed builder, then two at once."""

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpubench.images.kinds.base import images_root
from gpubench.images.kinds.venvs import ensure
from gpubench.model.image import Image

ENSURE = """
import json, sys
from collections.abc import Callable
from pathlib import Path
from gpubench.images.kinds.base import images_root
from gpubench.images.kinds.venvs import ensure
from gpubench.errors import GpubenchError
try:
    images = ensure(sys.argv[2:], Path(sys.argv[1]), lambda line: print(line, file=sys.stderr, flush=True))
    print(json.dumps({spec: image.model_dump() for spec, (image, _) in images.items()}))
except GpubenchError as error:
    print(f"{type(error).__name__}: {error}")
    sys.exit(error.exit_code)
"""
SPECS = ["1.17.0", "1.19.0"]
Images = dict[str, tuple[Image, dict[str, Any]]]
"""Images with their manifests, by spec."""


@dataclasses.dataclass(frozen=True)
class Built:
    """What the session's builders left and said."""

    root: Path
    left_by_killed: list[str]
    orphans: list[str]
    outputs: list[str]
    progress: list[str]
    seconds: float
    images: Images


def start_builder(root: Path, *specs: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", ENSURE, str(root), *specs],
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def processes_of(root: Path) -> list[str]:
    """Command lines that name ``root``."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            found += [words] if str(root) in words else []
    return found


def wait_until(condition, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="session")
def start() -> Callable[..., subprocess.Popen[str]]:
    """Start a process that builds: ``start(root, *specs, **environment)``."""
    return start_builder


@pytest.fixture(scope="session")
def kept() -> Images:
    """Those of this machine, kept between tests, for tests that need UCX or a stack and not how they were built."""
    return ensure(SPECS, images_root(), lambda line: print(line, file=sys.stderr))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    root = tmp_path_factory.mktemp("images")
    killed = start_builder(root, *SPECS)
    # uv is in the middle of it when the first package has arrived.
    wait_until(lambda: any((root / "venv").glob(".building/*/files/lib/python3*/site-packages/dask/*.py")))
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    left = sorted(path.name for path in (root / "venv").iterdir())
    wait_until(lambda: not processes_of(root))
    started = time.monotonic()
    builders = [start_builder(root, *SPECS) for _ in range(2)]
    said = [builder.communicate(timeout=500) for builder in builders]
    return Built(
        root=root,
        left_by_killed=left,
        orphans=processes_of(root),
        outputs=[output for output, _ in said],
        progress=[progress for _, progress in said],
        seconds=time.monotonic() - started,
        images=ensure(SPECS, root, lambda line: pytest.fail(f"built again: {line}")),
    )
