"""Small images, and what the engine has of them."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import docker
from gpubench.images.docker.build import BuildJob, BuildOutcome, build_all
from gpubench.images.docker.engine import Engine
from tests.docker.daemon import PASSWORD, USER, ContainerEngine

OURS = "io.gpubench.test"
ARCHITECTURE = "x86_64"


def dockerfile(base: str, *commands: str) -> dict[str, bytes]:
    """A context: ``commands`` on ``base``, then a manifest alone in the last layer."""
    lines = [f"FROM {base}", f"LABEL {OURS}=yes", *commands, "COPY manifest.json /gpubench/manifest.json"]
    return {"Dockerfile": "\n".join(lines).encode() + b"\n", "manifest.json": b'{"build_id": "b1"}'}


def job(name: str, files: Mapping[str, bytes], **more: Any) -> BuildJob:
    """A job with the tag ``ucx-py-NAME-20261121``."""
    defaults: dict[str, Any] = {"labels": {f"{OURS}.name": name}, "architecture": ARCHITECTURE, "network": "host"}
    return BuildJob(name=name, files=files, tag=f"ucx-py-{name.replace('/', '-')}-20261121", **{**defaults, **more})


def build_one(one: BuildJob, logs: Path) -> BuildOutcome:
    """Build a single job."""
    outcomes: list[BuildOutcome] = []
    with Engine.connect() as engine:
        build_all(engine, [one], logs, outcomes.append)
    return outcomes[0]


def built(engine: Engine, files: Mapping[str, bytes]) -> str:
    """The id of an image of this content."""
    outcomes: list[BuildOutcome] = []
    with tempfile.TemporaryDirectory() as logs:
        build_all(engine, [job("built", files, labels={})], Path(logs), outcomes.append)
    assert outcomes[0].error is None
    return outcomes[0].image


def tags(daemon: ContainerEngine) -> list[str]:
    """Every tag in the engine."""
    with contextlib.closing(daemon.client()) as client:
        return sorted(tag for image in client.images.list() for tag in image.tags)


def untagged(daemon: ContainerEngine) -> list[docker.models.images.Image]:
    """Images that nothing refers to."""
    with contextlib.closing(daemon.client()) as client:
        return list(client.images.list(filters={"dangling": True}))


def log_in(docker_home: Path, host: str, user: str = USER, password: str = PASSWORD) -> None:
    """What ``docker login`` writes."""
    word = base64.b64encode(f"{user}:{password}".encode()).decode()
    (docker_home / "config.json").write_text(json.dumps({"auths": {host: {"auth": word}}}))


def sha256(content: bytes) -> str:
    """As registries write it."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def remove(engine: Engine, image: str) -> None:
    """An image with all its tags."""
    engine._api.remove_image(image, force=True)


def layers(engine: Engine, image: str) -> list[str]:
    """The hashes of the image's layers, from the lowest on."""
    return list(engine._api.inspect_image(image)["RootFS"]["Layers"])  # type: ignore[no-untyped-call]


def tar_of(name: str, content: bytes) -> bytes:
    """An archive of one file."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()
