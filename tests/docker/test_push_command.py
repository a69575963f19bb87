"""``gpubench images push``: what isn't in the site's registry yet, wherever else it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpubench.images.docker.engine import Engine
from gpubench.images.docker.registry import Registry
from gpubench.model.images_lock import ImagesLock, LockRow
from tests.conftest import Run
from tests.docker.daemon import DockerDaemon, RegistryServer
from tests.docker.images import built, remove

pytestmark = pytest.mark.system


def lock(directory: Path, *rows: LockRow) -> None:
    (directory / "images.lock.toml").write_text(ImagesLock().with_rows(rows).dump())


def row(image: str, word: str) -> LockRow:
    return LockRow(
        kind="docker",
        spec="1.22.0",
        site="local",
        date="20261107",
        tag="ucx-py-1.22.0-20261107",
        digest=image,
        build_id=word,
        ucx_version="1.22.0",
        binding="ucxx",
        stack="ucxx-0.45.1",
        python="/opt/gpubench/stack/bin/python",
        architecture="x86_64",
        document={"build_id": word},
    )


def test_a_local_image_and_one_of_another_registry_are_pushed_once_each(  # noqa: PLR0917 - fixtures
    gpubench: Run, tmp_path: Path, engine: Engine, daemon: DockerDaemon, registry: RegistryServer, docker_home: Path
) -> None:
    env = {"DOCKER_HOST": daemon.host, "DOCKER_CONFIG": str(docker_home)}

    def push(place: str) -> str:
        done = gpubench("images", "push", "--set", f"image.registry={place}", env=env)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    image = built(engine, {"Dockerfile": b"FROM scratch\nCOPY x /\n", "x": b"to be pushed"})
    lock(tmp_path, row(image, "b1"))
    here = f"{registry.host}/team/pushed"
    said = push(here)
    digest = Registry(here).resolve("ucx-py-1.22.0-20261107", "x86_64").digest
    assert f"1.22.0: {here}@{digest}" in said
    assert "nothing to push: every image is in" in push(here)

    remove(engine, image)  # the second registry gets it from the first, not from what happens to lie in the engine
    with RegistryServer() as other:
        there = f"{other.host}/team/pushed"
        assert f"1.22.0: {there}@" in push(f"http://{there}")  # however it is asked, runtimes know it by its name
        assert Registry(there).resolve("ucx-py-1.22.0-20261107", "x86_64").config == image

    # A later build of the same day has the same tag; it isn't "there already".
    later = built(engine, {"Dockerfile": b"FROM scratch\nCOPY x /\n", "x": b"a later build"})
    lock(tmp_path, row(digest, "b1").model_copy(update={"registry": here}), row(later, "b2"))
    push(here)
    assert Registry(here).resolve("ucx-py-1.22.0-20261107", "x86_64").config == later
    (left,) = ImagesLock.parse((tmp_path / "images.lock.toml").read_text(), "lock").image
    assert (left.build_id, left.registry) == ("b2", here)
