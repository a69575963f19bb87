"""`gpubench sites new`: a profile to fill in, for every combination of adapters that there is."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from gpubench.cli.sites.new_site import new_site
from gpubench.plan.adapter_combinations import VALID
from tests.cli.test_bad_input import one_line
from tests.conftest import Run


def test_a_new_profile_says_what_to_fill_in_and_passes_its_check_once_that_is_done(
    gpubench: Run, tmp_path: Path
) -> None:
    done = gpubench("sites", "new", "hopper", "--scheduler", "slurm", "--runtime", "apptainer")
    assert (done.returncode, done.stderr) == (0, "")
    assert "hopper.toml: fill in interface, batch.queue, paths.shared\n" in done.stdout
    text = (tmp_path / "hopper.toml").read_text()
    schema = text.split("\n")[0].removeprefix("#:schema file://")
    assert json.loads(Path(schema).read_text())["title"] == "Site"
    done = gpubench("sites", "check", "./hopper.toml")
    wrong = [line for line in done.stdout.splitlines() if line.startswith("wrong")]
    for key in ("interface", "batch.queue", "paths.shared"):
        assert f"wrong: {key} is empty, and hopper.toml says that it must be filled in" in wrong
    assert (done.returncode, len(wrong)) == (2, 4)
    assert "wrong: interface '' can't be the name of a network device" in wrong
    assert "not checked: paths.shared" not in done.stdout
    filled = text.replace('interface = ""', 'interface = "ib0"').replace('queue = ""', 'queue = "gpu"')
    (tmp_path / "hopper.toml").write_text(filled)
    done = gpubench("sites", "check", "./hopper.toml", "--set", "paths.shared=['/home']")
    assert (done.returncode, "wrong" in done.stdout) == (0, False), done.stdout
    (tmp_path / "hopper.toml").write_text(filled.replace("shared = []", 'shared = ["/home"]'))
    done = gpubench("plan", "--site", "hopper.toml")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("triple", sorted(VALID), ids="+".join)
def test_every_combination_of_adapters_has_a_profile_that_can_be_read_with_every_comment_taken_away(
    gpubench: Run, tmp_path: Path, triple: tuple[str, str, str]
) -> None:
    scheduler, launcher, runtime = triple
    new_site("mine", scheduler, launcher, runtime, tmp_path)
    text = (tmp_path / "mine.toml").read_text()
    plain = tomllib.loads(text)
    assert (plain["scheduler"], plain["launcher"], plain["runtime"]) == triple
    _, _, keys = text.partition('name = "mine"')
    (tmp_path / "whole.toml").write_text(f'name = "whole"{keys}'.replace("\n# ", "\n"))
    done = gpubench("sites", "list", "./whole.toml")
    assert done.returncode == 0, done.stderr


def test_a_file_that_exists_is_left_as_it_is(gpubench: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("mine")
    done = gpubench("sites", "new", "mine", "--scheduler", "local", "--runtime", "venv")
    assert (done.returncode, "mine.toml exists already" in one_line(done)) == (2, True)
    assert (tmp_path / "mine.toml").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["a/b", "--scheduler", "slurm", "--runtime", "pyxis"], 2, "'a/b': no name"),
        (["mine", "--scheduler", "slrum", "--runtime", "pyxis"], 2, "no scheduler 'slrum' (did you mean 'slurm'?)"),
        (["mine", "--scheduler", "lsf", "--runtime", "docker"], 6, "lsf + docker don't go together; they go together:"),
    ],
)
def test_a_wrong_word_is_named_and_nothing_is_written(
    gpubench: Run, tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    done = gpubench("sites", "new", *words)
    assert (done.returncode, said in one_line(done)) == (code, True)
    assert list(tmp_path.iterdir()) == []
