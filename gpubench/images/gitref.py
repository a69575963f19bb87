"""A git ref → the commit that it names now, asked of the repository itself."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
from collections.abc import Mapping

from gpubench.errors import MissingToolError, UsageError

DEADLINE_S = 60.0
"""One listing of a repository's refs takes about a second."""

_LINE = re.compile(r"([0-9a-f]{40})\trefs/(heads|tags)/(\S+)")
_SECRET = re.compile(r"(?<=//)[^/@\s]+@")


def refs(repository: str) -> dict[str, str]:
    """Commit by branch and tag; a tag wins over a branch of the same name, as git itself decides.

    Raises:
        MissingToolError: git isn't installed, or the repository doesn't answer.
    """
    shown = _SECRET.sub("", repository)
    try:
        done = subprocess.run(
            ["git", "ls-remote", "--heads", "--tags", "--", repository],
            env=_environment(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=DEADLINE_S,
            check=False,
        )
    except FileNotFoundError:
        raise MissingToolError("git, which resolves UCX branches, is not installed", then="install git") from None
    except subprocess.TimeoutExpired:
        raise _silent(shown, f"no answer within {DEADLINE_S:.0f} s") from None
    if done.returncode:
        lines = _SECRET.sub("", done.stderr).strip().splitlines()
        raise _silent(shown, lines[0] if lines else f"git ended with {done.returncode}")
    return _by_name(done.stdout)


def commit_of(repository: str, ref: str, known: Mapping[str, str] | None = None) -> str:
    """The commit (40 hexadecimal digits) of a branch or tag; ``known`` are refs that were listed before.

    Raises:
        UsageError: the repository has no such ref; names the nearest.
        MissingToolError: git isn't installed, or the repository doesn't answer.
    """
    found = refs(repository) if known is None else known
    if ref in found:
        return found[ref]
    near = difflib.get_close_matches(ref, sorted(found), n=1, cutoff=0.5)
    raise UsageError(
        f"{_SECRET.sub('', repository)} has no branch or tag '{ref}'",
        then=f"nearest: {near[0]}" if near else "see git ls-remote",
    )


def _by_name(listing: str) -> dict[str, str]:
    heads: dict[str, str] = {}
    tags: dict[str, str] = {}
    for line in listing.splitlines():
        if found := _LINE.fullmatch(line):
            commit, kind, name = found.groups()
            # The line of an annotated tag's commit (NAME^{}) follows that of the tag's own object.
            (heads if kind == "heads" else tags)[name.removesuffix("^{}")] = commit
    return heads | tags


def _environment(shell: Mapping[str, str]) -> dict[str, str]:
    """Nothing may ask at the terminal or in a window: a build waits for nobody."""
    return {
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
        **shell,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "LC_ALL": "C",
    }


def _silent(repository: str, cause: str) -> MissingToolError:
    return MissingToolError(
        f"the git repository {repository} doesn't answer ({cause})",
        then="check the network and image.ucx_repository, or pin the commit by hand: REF@COMMIT",
    )
