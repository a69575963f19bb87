"""The packages that a process reports: read in a shorter way than by the standard library, with the same outcome."""

import sys
from importlib import metadata
from pathlib import Path

import pytest

from gpubench.node.image import packages


def of_the_standard_library() -> dict[str, str]:
    found: dict[str, str] = {}
    for item in metadata.distributions():
        if item.read_text("METADATA") or item.read_text("PKG-INFO") or item.read_text(""):
            name = item.metadata.get("Name")
            found.setdefault(str(name).lower().replace("_", "-"), item.version)
    found.pop("none", None)
    return dict(sorted(found.items()))


def test_the_packages_of_this_python_are_those_that_the_standard_library_finds() -> None:
    assert packages() == of_the_standard_library()
    assert "dask" in packages()


@pytest.mark.parametrize(
    ("file", "text", "version"),
    [
        ("odd-1.dist-info/METADATA", "Name: odd\nVersion: 1\nSummary: x\n\nName: other\nVersion: 9\n", "1"),
        ("odd-1.dist-info/METADATA", "Summary: x\n Name: other\nVersion:  1\nName: \t Odd\nName: third\n", "1"),
        ("odd-1.dist-info/METADATA", "name: odd\nVERSION: 1\n", "1"),
        ("odd-1.dist-info/METADATA", "Version: 1\n\nNo name.\n", None),
        ("odd-1.egg-info/PKG-INFO", "Name: odd\nVersion: 1\n", "1"),
        ("odd-1.egg-info", "Name: odd\nVersion: 1\n", "1"),
        ("odd-1.dist-info/RECORD", "", None),
    ],
)
def test_headers_are_found_in_every_form_and_a_broken_package_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, version: str | None
) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert packages().get("odd") == version
    assert packages() == of_the_standard_library()
