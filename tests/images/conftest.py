"""Real images for all integration tests."""

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gpubench.images.kinds.base import images_root
from gpubench.images.kinds.venvs import ensure
from gpubench.model.image import Image

ENSURE = """
import json, sys
from pathlib import Path
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
    """Images that nobody else uses, and where they are."""

    root: Path
    images: Images


def start_builder(root: Path, *specs: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", ENSURE, str(root), *specs],
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def git(folder: Path, *words: str) -> str:
    """What a command of git prints."""
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def repository(folder: Path, files: Mapping[str, str]) -> Path:
    """A git repository of these programs, with one commit on ``master``."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    git(folder, "init", "-q", "-b", "master")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


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
    return Built(root, ensure(SPECS, root, lambda line: print(line, file=sys.stderr)))
