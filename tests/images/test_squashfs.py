"""Imported squashfs files: found, checked, listed."""

import json
from pathlib import Path

import pytest

from gpubench.errors import DataError
from gpubench.images.kinds import squashfs
from gpubench.render.importing import SIDECAR, squashfs_name

DATA = b"hsqs and more"


def digest(number: int) -> str:
    return f"sha256:{number:064x}"


def put(folder: Path, number: int, spec: str = "1.19.0", **changes: object) -> Path:
    path = folder / squashfs_name(digest(number))
    path.parent.mkdir(parents=True)
    path.write_bytes(DATA)
    facts = {
        "schema": SIDECAR,
        "digest": digest(number),
        "ucx_spec": spec,
        "date": "20260101",
        "size": len(DATA),
        **changes,
    }
    path.with_name("image.sqsh.json").write_text(json.dumps(facts))
    return path


def test_what_was_imported_is_found_by_its_digest(tmp_path: Path) -> None:
    path = put(tmp_path, 1)
    found = squashfs.find_import(tmp_path, digest(1))
    assert found is not None
    assert (found.path, found.digest, found.spec) == (path, digest(1), "1.19.0")
    assert squashfs.at(path) == found
    squashfs.check(found)
    assert squashfs.find_import(tmp_path, digest(2)) is None


@pytest.mark.parametrize("changes", [{"digest": digest(9)}, {"schema": "other/1"}, {"size": "many"}, {"date": None}])
def test_a_sidecar_that_is_not_its_own_is_one_line(tmp_path: Path, changes: dict[str, object]) -> None:
    path = put(tmp_path, 1, **changes)
    if changes == {"date": None}:
        path.with_name("image.sqsh.json").write_text("{")
    with pytest.raises(DataError, match=r"sidecar of .*image\.sqsh .*; remove its directory and import it again"):
        squashfs.find_import(tmp_path, digest(1))


def test_a_file_of_another_size_or_none_at_all_is_found_out(tmp_path: Path) -> None:
    path = put(tmp_path, 1)
    found = squashfs.at(path)
    assert found
    path.write_bytes(DATA + b"x")
    with pytest.raises(DataError, match="has 14 bytes, and 13 were imported"):
        squashfs.check(found)
    path.unlink()
    with pytest.raises(DataError, match=r"can't read .*image\.sqsh: No such file"):
        squashfs.check(found)


def test_the_list_is_sorted_and_leaves_out_temporary_and_damaged_ones(tmp_path: Path) -> None:
    put(tmp_path, 1, "1.22.0")
    put(tmp_path, 2, "1.19.0")
    put(tmp_path, 3).with_name("image.sqsh.json").unlink()
    (tmp_path / f".sha256-{4:064x}.node.1.2.part").mkdir()
    assert [one.spec for one in squashfs.imported(tmp_path)] == ["1.19.0", "1.22.0"]
    assert squashfs.imported(tmp_path / "none") == []
