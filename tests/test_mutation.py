"""Mutants are tried with folders of tests that exist: pytest calls a folder that does not exist a failure."""

from tests.mutation import OTHERS, ROOT


def test_every_folder_that_tries_a_mutant_exists() -> None:
    assert [name for name in OTHERS if not (ROOT / "tests" / name).is_dir()] == []
