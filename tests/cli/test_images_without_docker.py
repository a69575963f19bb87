"""``gpubench images`` where there is no Docker, no network and nothing built yet: one line, and nothing lost."""

import json
import subprocess
from pathlib import Path

import pytest

from gpubench.model.images_lock import ImagesLock
from tests.conftest import Run
from tests.images.test_squashfs import digest, put
from tests.importing.nodes import row

NOWHERE = {"DOCKER_HOST": "unix:///nowhere/docker.sock"}


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stderr.strip().splitlines()[-1]


def test_without_docker_the_dockerfiles_are_written_and_the_exit_code_says_so(gpubench: Run, tmp_path: Path) -> None:
    done = gpubench("images", "build", "1.16.0", "1.22.0", "--out", "files", env=NOWHERE)
    assert done.returncode == 5
    assert last_line(done).startswith("gpubench: Docker doesn't answer")
    assert "Dockerfiles written to files" in last_line(done)
    for version in ("1.16.0", "1.22.0"):
        text = (tmp_path / "files" / f"local-{version}" / "Dockerfile").read_text()
        assert f'io.gpubench.ucx-spec="{version}"' in text
    assert not (tmp_path / "images.lock.toml").exists()


def test_a_branch_that_nobody_can_resolve_leaves_a_dockerfile_that_says_so(gpubench: Run, tmp_path: Path) -> None:
    repository = f"image.ucx_repository=file://{tmp_path}/no-such-repository"
    done = gpubench("images", "build", "v1.18.x", "v1.14.x", "--out", "files", "--set", repository, env=NOWHERE)
    assert done.returncode == 5
    assert "doesn't say which commit v1.18.x, v1.14.x is; Dockerfiles written to files" in last_line(done)
    assert "pin it yourself: v1.18.x@COMMIT" in last_line(done)
    for version in ("v1.18.x", "v1.14.x"):  # a stack of wheels, and one of conda packages with ucx-py
        assert "ARG UCX_COMMIT" in (tmp_path / "files" / f"local-{version}" / "Dockerfile").read_text()


def test_an_empty_table_says_how_to_fill_it(gpubench: Run, tmp_path: Path) -> None:
    done = gpubench("images", "list", env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert (done.returncode, done.stdout.splitlines()[0][:12]) == (0, "no image yet")


def test_a_registry_that_is_down_is_one_line_and_exit_7(gpubench: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpubench.images.docker.registry.LONGEST_PAUSE_S", 0)
    done = gpubench("images", "list", "--registry", "--set", "image.registry=127.0.0.1:9/team/bench", env=NOWHERE)
    assert done.returncode == 7
    assert len(done.stderr.strip().splitlines()) == 1
    assert "127.0.0.1:9" in last_line(done)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"schema = 'gpubench/images-lock/1'\n[[image]]\nspec = 3\n", "images.lock.toml: "),
        (b"# f\xfcr uns\n", "images.lock.toml is not TOML: its byte 3"),
    ],
)
def test_a_damaged_lock_is_named_and_left_as_it_is(gpubench: Run, tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "images.lock.toml").write_bytes(content)
    done = gpubench("images", "list")
    assert (done.returncode, said in last_line(done)) == (2, True)
    assert (tmp_path / "images.lock.toml").read_bytes() == content


def test_images_of_a_profile_of_your_own_are_listed_where_it_has_them(gpubench: Run, tmp_path: Path) -> None:
    own = f'inherits = "local"\nname = "mine"\n[imports]\nfolder = "{tmp_path}/sqsh"\n'
    (tmp_path / "mine.toml").write_text(own)
    put(tmp_path / "sqsh", 1)
    put(tmp_path / "sqsh", 2, "1.22.0")
    (tmp_path / "images.lock.toml").write_text(ImagesLock().with_rows([row(site="mine", digest=digest(1))]).dump())
    env = {**NOWHERE, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def kinds(*words: str) -> list[tuple[str, str]]:
        done = gpubench("images", "list", "--json", *words, env=env)
        return [(one["kind"], one["spec"]) for one in json.loads(done.stdout)["images"]]

    assert kinds() == [("docker", "1.19.0")]
    assert kinds("--site", "mine.toml") == [("docker", "1.19.0"), ("squashfs", "1.19.0"), ("squashfs", "1.22.0")]


def test_a_list_builds_nothing(gpubench: Run, tmp_path: Path) -> None:
    done = gpubench("images", "list", "1.22.0", env={"XDG_CACHE_HOME": str(tmp_path / "cache")}, code=2)
    assert "there is no image 1.22.0 for site local; gpubench images build --site local --ucx 1.22.0" in last_line(done)
    assert not [*tmp_path.glob("cache/gpubench/venv/*")]


def test_without_a_version_those_of_the_sites_own_variants_are_built(gpubench: Run, tmp_path: Path) -> None:
    variants = 'defaults.variants=["1.17", "1.19.0"]'
    done = gpubench("images", "build", "--set", variants, "--out", "files", env=NOWHERE)
    assert done.returncode == 5, done.stderr
    assert sorted(path.name for path in (tmp_path / "files").iterdir()) == ["local-1.17.0", "local-1.19.0"]


def test_variables_in_the_path_of_outputs_are_put_in(gpubench: Run, tmp_path: Path) -> None:
    outputs = 'paths.outputs="$SCRATCH_OF_MINE/outputs"'
    done = gpubench(
        "images", "build", "1.16.0", "--set", outputs, env={**NOWHERE, "SCRATCH_OF_MINE": str(tmp_path / "mine")}
    )
    assert done.returncode == 5, done.stderr
    assert (tmp_path / "mine" / "outputs" / "images" / "local-1.16.0" / "Dockerfile").is_file()
    assert not list(tmp_path.glob("$*"))
