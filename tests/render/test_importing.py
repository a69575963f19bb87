"""The rendered import script: names, quoting, shellcheck."""

import json
import shlex
from pathlib import Path

import pytest

from gpubench import resources
from gpubench.render.importing import PROGRAMS, link_name, render_import, squashfs_name
from tests.importing.nodes import row
from tests.rendering import check_shell

DIGEST = f"sha256:{'ab' * 32}"
ROW = row(
    spec="v1.14.x",
    registry="registry.example:5000/team/ucx",
    tag="ucx-py-v1.14.x-20260101",
    digest=DIGEST,
    build_id="b1",
    architecture="ppc64le",
)
TEMPLATES = resources.texts("templates", "importing/**/*.j2")


def calls(script: str) -> list[list[str]]:
    """The words of every ``image`` call."""
    return [shlex.split(line)[1:] for line in script.splitlines() if line.startswith("image ")]


@pytest.mark.parametrize("text", ["", "ab" * 32, f"{DIGEST}/..", DIGEST.upper(), f"sha512:{'ab' * 32}", f"{DIGEST}\n"])
def test_what_is_no_digest_names_no_file(text: str) -> None:
    with pytest.raises(ValueError, match="not a digest"):
        squashfs_name(text)


def test_a_registry_without_a_repository_is_refused() -> None:
    with pytest.raises(ValueError, match=r"registry\.example"):
        render_import(
            [ROW.model_copy(update={"registry": "registry.example"})], "/i", TEMPLATES, program="enroot", gpubench="1"
        )


@pytest.mark.parametrize(
    ("spec", "name"),
    [("v1.14.x", "ucx-py-v1.14.x-20260101.sqsh"), ("feature/a b", "ucx-py-feature-a-b-20260101.sqsh")],
)
def test_the_link_of_a_spec_is_one_file_name(spec: str, name: str) -> None:
    assert link_name(spec, "20260101") == name


def test_each_image_is_one_call_in_the_order_given() -> None:
    other = ROW.model_copy(update={"spec": "master", "digest": f"sha256:{'cd' * 32}"})
    script = render_import([ROW, other], "/images", TEMPLATES, program="enroot", gpubench="1")
    first, second = calls(script)
    assert first[:8] == [
        *("v1.14.x", "registry.example:5000", "team/ucx", DIGEST, f"sha256-{'ab' * 32}"),
        *("ucx-py-v1.14.x-20260101.sqsh", "ppc64le", "b1"),
    ]
    assert json.loads(first[8] + "}") == {
        "schema": "gpubench/squashfs/1",
        "digest": DIGEST,
        "registry": "registry.example:5000/team/ucx",
        "tag": "ucx-py-v1.14.x-20260101",
        "build_id": "b1",
        "ucx_spec": "v1.14.x",
        "date": "20260101",
        "architecture": "ppc64le",
    }
    assert second[0] == "master"


def test_no_value_becomes_shell() -> None:
    evil = "$(touch evil) `touch evil`; touch evil '\" * \\"
    item = ROW.model_copy(update={"spec": evil, "tag": evil, "build_id": evil})
    (words,) = calls(render_import([item], "/images", TEMPLATES, program="enroot", gpubench="1"))
    assert (words[0], words[7], json.loads(words[8] + "}")["tag"]) == (evil, evil, evil)


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_the_script_passes_shellcheck(program: str, tmp_path: Path) -> None:
    script = render_import([ROW], "/images of/us", TEMPLATES, program=program, gpubench="1.2.3")
    check_shell(tmp_path / "import.sh", script)
