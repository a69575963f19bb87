"""A release is a tag: it names the version that the code has, and the changelog has a dated section for it."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

import gpubench
from tests.conftest import ROOT, need


def faults(tags: list[str], version: str, changelog: str) -> list[str]:
    """What doesn't agree with a commit's tags; a commit without one may be anything."""
    found = [f"tag {tag} is no v{version}" for tag in tags if tag.startswith("v") and tag != f"v{version}"]
    if f"v{version}" in tags and not re.search(
        rf"^## {re.escape(version)}, \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE
    ):
        found.append(f"CHANGELOG.md has no heading '## {version}, YYYY-MM-DD'")
    return found


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ([], []),
        (["v1.2.0", "notes"], []),
        (["v1.3.0"], ["tag v1.3.0 is no v1.2.0"]),
        (["v1.2.0", "v1.2"], ["tag v1.2 is no v1.2.0"]),
    ],
)
def test_a_tag_names_the_version(tags: list[str], found: list[str]) -> None:
    assert faults(tags, "1.2.0", "# Changelog\n\n## 1.2.0, 2026-12-01\n") == found


def test_a_release_has_its_notes() -> None:
    assert faults(["v1.2.0"], "1.2.0", "## Unreleased\n") == ["CHANGELOG.md has no heading '## 1.2.0, YYYY-MM-DD'"]


def test_this_commit_agrees_with_its_tags() -> None:
    need(shutil.which("git") is not None and (ROOT / ".git").exists(), "git, and a checkout")
    done = subprocess.run(
        ["git", "-C", str(ROOT), "tag", "--points-at", "HEAD"], capture_output=True, text=True, check=True
    )
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert faults(done.stdout.split(), gpubench.__version__, changelog) == []
