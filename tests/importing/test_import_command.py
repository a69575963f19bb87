"""``gpubench images import``: the locked images, started by the words that the site wants before the script."""

import json
from pathlib import Path

import pytest

from gpubench.model.images_lock import ImagesLock
from tests.conftest import Run, free_port
from tests.importing.nodes import DATE, REPOSITORY, SPEC, Importer, image_files, row
from tests.importing.registry import Registry

pytestmark = pytest.mark.system


def lock(directory: Path, digest: str, host: str) -> None:
    registry = f"{host}/{REPOSITORY}" if host else ""
    locked = row(site="mine", registry=registry, tag=f"ucx-py-{SPEC}-{DATE}", digest=digest)
    (directory / "images.lock.toml").write_text(ImagesLock().with_rows([locked]).dump())


@pytest.fixture
def site(tmp_path: Path, importer: Importer) -> Path:
    """A profile whose imports run as a job: here a shell that notes its words and starts them."""
    job = tmp_path / "job"
    job.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >{tmp_path}/launched\nshift\nexec "$@"\n')
    job.chmod(0o755)
    path = tmp_path / "mine.toml"
    own = {"launch": [str(job), "--partition=one two"], "folder": str(importer.folder)}
    path.write_text(
        'inherits = "local"\nname = "mine"\n[imports]\n' + "".join(f"{k} = {json.dumps(v)}\n" for k, v in own.items())
    )
    return path


def test_the_import_is_started_by_the_words_of_the_profile_and_lands_under_its_digest(
    gpubench: Run, tmp_path: Path, importer: Importer, registry: Registry, site: Path
) -> None:
    digest = registry.push(REPOSITORY, "command", image_files())
    lock(tmp_path, digest, registry.host)
    gpubench("images", "import", "--site", site, env=importer.env, code=0)
    script = tmp_path / "outputs" / "images" / "mine" / "import.sh"
    assert (tmp_path / "launched").read_text() == f"--partition=one two bash {script}\n"
    assert importer.check(digest)


def test_only_the_script_is_written_where_a_folder_is_named(
    gpubench: Run, tmp_path: Path, importer: Importer, site: Path
) -> None:
    lock(tmp_path, f"sha256:{'1' * 64}", "registry.example")
    done = gpubench("images", "import", "--site", site, "--out", "scripts", env=importer.env)
    assert (done.returncode, done.stdout) == (0, f"scripts/import.sh imports 1 image into {importer.folder}\n")
    assert f"sha256-{'1' * 64}" in (tmp_path / "scripts" / "import.sh").read_text()
    assert not (tmp_path / "launched").exists()


def test_what_goes_wrong_has_its_exit_code_and_says_where_the_script_is(
    gpubench: Run, tmp_path: Path, importer: Importer, site: Path
) -> None:
    lock(tmp_path, f"sha256:{'1' * 64}", f"127.0.0.1:{free_port()}")
    words = ("images", "import", SPEC, "--site", site)
    down = gpubench(*words, env={**importer.env, "GPUBENCH_IMPORT_TRIES": "1"})
    assert (down.returncode, "import.sh ended with exit code 7" in down.stderr) == (7, True), down.stderr
    missing = gpubench(*words, "--set", 'imports.launch=["no-such-srun"]', env=importer.env)
    assert (missing.returncode, "can't start no-such-srun" in missing.stderr) == (5, True), missing.stderr
    assert "run it on a machine with enroot: bash outputs/images/mine/import.sh" in missing.stderr
    lock(tmp_path, f"sha256:{'1' * 64}", "")
    local = gpubench(*words, env=importer.env)
    assert (local.returncode, f"push it: gpubench images push {SPEC} --site {site}" in local.stderr) == (2, True)
