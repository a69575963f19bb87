"""The import script and the words of Apptainer and enroot for why they can't have an image."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.answers import FOLDER
from tests.importing.nodes import REPOSITORY, Importer, item

CASES = tomllib.loads((FOLDER / "import.toml").read_text(encoding="utf-8"))["case"]
DIGEST = f"sha256:{'0' * 64}"
SAYS = """#!/bin/bash
case "$1" in
  --version | version) echo "PROGRAM version 4.1.2" ;;
  *) echo x >>"$0.tries"; echo "${!#}" >>"$0.images"; cat "$0.log" >&2; exit 1 ;;
esac
"""


def importer_that_says(tmp_path: Path, program: str, log: str) -> Importer:
    """A node whose program fails with ``log``."""
    importer = Importer(tmp_path / "a node", tmp_path / "squash files")
    tools = importer.home / "bin"
    importer.program = program
    (tools / program).unlink(missing_ok=True)
    (tools / program).write_text(SAYS.replace("PROGRAM", program))
    (tools / program).chmod(0o755)
    (tools / f"{program}.log").write_text(log.strip() + "\n")
    return importer


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["says"])[:50])
def test_what_passes_is_waited_for_a_refusal_says_how_to_log_in_and_no_cause_is_empty(
    tmp_path: Path, case: dict[str, Any]
) -> None:
    importer = importer_that_says(tmp_path, case["program"], case["log"])
    code, said = importer.run(item("registry.example.org", DIGEST))
    assert (code, case["says"] in said) == (case["code"], True), said
    tries = (importer.home / "bin" / f"{case['program']}.tries").read_text()
    assert tries.count("x") == case["tries"]
    assert importer.left_over() == []


def test_the_log_of_a_try_without_a_reason_stays(tmp_path: Path) -> None:
    importer = importer_that_says(tmp_path, "enroot", "[INFO] Downloading 9 missing layers...")
    importer.run(item("registry.example.org", DIGEST))
    (log,) = importer.folder.iterdir()
    assert (log.name, log.read_text()) == (
        f"{DIGEST.replace(':', '-')}.log",
        "[INFO] Downloading 9 missing layers...\n",
    )


@pytest.mark.parametrize(
    ("host", "machines"),
    [
        ("docker.io", ["registry-1.docker.io", "auth.docker.io"]),
        ("nvcr.io", ["nvcr.io", "authn.nvidia.com"]),
        ("h.org:5000", ["h.org"]),
    ],
)
def test_the_line_with_the_login_names_the_machines_that_enroot_asks(
    tmp_path: Path, host: str, machines: list[str]
) -> None:
    """As cmd/import.md of enroot has them."""
    importer = importer_that_says(tmp_path, "enroot", "[ERROR] URL https://x returned error code: 401 Unauthorized")
    _, said = importer.run(item(host, DIGEST))
    assert all(f"machine {machine}" in said for machine in machines), said


@pytest.mark.parametrize("host", ["docker.io", "index.docker.io"])
def test_enroot_asks_docker_s_registry_by_the_name_under_which_it_answers(tmp_path: Path, host: str) -> None:
    """``_parse_uri`` in docker.sh of enroot takes the host as it is up to 4.1.2."""
    importer = importer_that_says(tmp_path, "enroot", "[ERROR] URL https://x returned error code: 404 Not Found")
    importer.run(item(host, DIGEST))
    (image,) = (importer.home / "bin" / "enroot.images").read_text().splitlines()
    assert image == f"docker://registry-1.docker.io#{REPOSITORY}@{DIGEST}"
