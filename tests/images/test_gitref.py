"""Refs of a real repository."""

import os
import subprocess
from pathlib import Path

import pytest

from gpubench.errors import MissingToolError, UsageError
from gpubench.images import recipes


def git(folder: Path, *words: str) -> str:
    who = {f"GIT_{role}_{part}": "test@example.org" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", "-C", str(folder), *words], env={**os.environ, **who}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``master`` ahead of ``v1.14.x``; ``v1.14.1`` an annotated tag, ``light`` none, ``both`` tag and branch."""
    folder = tmp_path_factory.mktemp("ucx")
    git(folder, "init", "-q", "-b", "master")
    git(folder, "commit", "-q", "--allow-empty", "-m", "old")
    git(folder, "branch", "v1.14.x")
    git(folder, "branch", "topic/rndv")
    git(folder, "tag", "-a", "v1.14.1", "-m", "annotated")
    git(folder, "tag", "light")
    git(folder, "tag", "both")
    git(folder, "commit", "-q", "--allow-empty", "-m", "new")
    git(folder, "branch", "both")
    return folder


@pytest.mark.parametrize("ref", ["v1.14.x", "topic/rndv", "v1.14.1", "light", "both"])
def test_a_branch_or_tag_is_its_commit(repository: Path, ref: str) -> None:
    assert recipes.commit_of(str(repository), ref) == git(repository, "rev-parse", "master~1")


def test_an_unknown_ref_names_the_nearest(repository: Path) -> None:
    with pytest.raises(UsageError, match=r"has no branch or tag 'v1\.14\.y'; nearest: v1\.14\.[1x]"):
        recipes.commit_of(str(repository), "v1.14.y")


def test_a_repository_that_is_not_there_is_a_missing_tool(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError, match=r"nowhere doesn't answer \(.*\); check the network and image.ucx_repos"):
        recipes.refs(f"file://{tmp_path}/nowhere")


def test_a_repository_named_like_an_option_is_no_option(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError, match="doesn't answer"):
        recipes.refs(f"--upload-pack=touch {tmp_path}/owned")
    assert not (tmp_path / "owned").exists()


def test_credentials_in_an_address_are_not_printed() -> None:
    with pytest.raises(MissingToolError) as refused:
        recipes.refs("http://user:planted-secret@127.0.0.1:9/ucx.git")
    assert "planted-secret" not in str(refused.value)


def test_a_repository_that_accepts_and_never_answers_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(recipes, "LISTING_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(MissingToolError, match="no answer within 1 s"):
            recipes.refs(f"git://127.0.0.1:{port}/ucx.git")


def test_without_git_the_message_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match="git, which resolves UCX branches, is not installed; install git"):
        recipes.refs(str(tmp_path))
