"""Real builds from a real index, and the library that is really loaded."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from gpubench.errors import DataError, MissingToolError, UsageError
from gpubench.images import folders
from gpubench.images.compatibility import Stack, stacks
from gpubench.images.kinds import venvs
from gpubench.images.kinds.venvs import ensure, ready
from gpubench.images.manifests import differences
from gpubench.images.variables import why_unknown
from gpubench.model.image import Image, manifest_id
from gpubench.node.spec.plain import canonical
from gpubench.resources.profiles import load_site

pytestmark = pytest.mark.integration

LOADED = """
import json, ucxx
mapped = {line.split()[-1] for line in open("/proc/self/maps") if "libucp.so" in line}
print(json.dumps([".".join(map(str, ucxx.get_ucx_version())), sorted(mapped)]))
"""


def ask(image: Image, code: str, **env: str) -> str:
    done = subprocess.run(
        [image.python, "-I", "-c", code], env=env, capture_output=True, text=True, check=True, timeout=150
    )
    return done.stdout


def assert_unchanged(image: Image) -> None:
    """Every byte of the image is as it was built, also of files that hide their time."""
    for files in (Path(image.python).parents[1], Path(image.env["LD_LIBRARY_PATH"]).parents[1]):
        built = json.loads(files.with_name("inventory.json").read_text("utf-8"))
        digests = [{path: row[2] for path, row in rows.items()} for rows in (built, folders.record_files(files))]
        assert digests[0] == digests[1]


def test_each_image_loads_its_own_ucx_and_no_other(built) -> None:
    for image, manifest in built.images.values():
        version, mapped = json.loads(ask(image, LOADED, **image.env))
        assert version == manifest["ucx"]["release"]
        assert mapped == [manifest["ucx"]["libucp"]]


def test_the_table_of_variables_knows_what_each_ucx_lists(built) -> None:
    for image, _ in built.images.values():
        tool = Path(image.env["LD_LIBRARY_PATH"]).parent / "bin" / "ucx_info"
        listed = subprocess.run([tool, "-ca"], env=image.env, capture_output=True, text=True, check=True).stdout
        names = re.findall(r"^(UCX_[A-Z0-9_]+)=", listed, re.MULTILINE)
        assert len(names) > 150
        assert [name for name in names if why_unknown(name)] == []


def test_without_the_image_s_environment_no_ucx_loads_at_all(built) -> None:
    image, _ = built.images["1.17.0"]
    with pytest.raises(subprocess.CalledProcessError) as failed:
        ask(image, LOADED)
    assert "libucs.so.0: cannot open shared object file" in failed.value.stderr


def test_ucx_is_the_only_thing_that_differs(built) -> None:
    (one, left), (other, right) = built.images.values()
    paths = [path for path, _, _ in differences(left, right)]
    assert paths
    assert all(path.startswith("ucx.") for path in paths)
    assert {"ucx.version", "ucx.revision", "ucx.content", "ucx.libucp"} <= set(paths)
    assert one.python == other.python
    assert {key for key in one.env if one.env[key] != other.env[key]} == {"LD_LIBRARY_PATH"}
    assert one.id != other.id
    assert one.manifest == manifest_id(left) != other.manifest
    assert str(left["ucx"]["configure"]).startswith("--")
    assert b"libucx-cu12" not in canonical(left["stack"])


def test_two_names_of_a_version_share_the_image(built) -> None:
    images = ensure(["v1.17.0", "1.17.0.post1"], built.root, pytest.fail)
    one, other = (image for image, _ in images.values())
    assert one.id == other.id == built.images["1.17.0"][0].id
    assert one.manifest == other.manifest
    assert (one.ucx_spec, other.ucx_spec) == ("v1.17.0", "1.17.0.post1")


def test_a_sound_image_verifies_and_running_it_does_not_change_it(built) -> None:
    image, _ = built.images["1.19.0"]
    ask(image, "import distributed_ucxx, dask.dataframe, dask.array", **image.env)
    ready(image)
    assert_unchanged(image)


def test_an_image_s_files_are_its_own(built) -> None:
    image, manifest = built.images["1.19.0"]
    for path in (Path(manifest["ucx"]["libucp"]), next(Path(image.python).parents[1].rglob("distributed/worker.py"))):
        assert path.stat().st_nlink == 1  # no link into uv's cache: an edit of another environment isn't one of ours


def test_a_tampered_library_is_refused_and_built_anew_by_the_next_plan(built) -> None:
    image, manifest = built.images["1.19.0"]
    library = Path(manifest["ucx"]["libucp"])
    sound = library.read_bytes()
    library.write_bytes(b"another library")
    with pytest.raises(DataError, match=r"is damaged: 1 of its files changed.*; the next plan or bench"):
        ready(image)
    said: list[str] = []
    (again, _) = ensure(["1.19.0"], built.root, said.append)["1.19.0"]
    assert again == image
    assert [line for line in said if "is damaged" in line and line.endswith("it is built again")]
    assert library.read_bytes() == sound
    assert_unchanged(image)


def test_an_image_that_is_not_the_planned_one_is_refused(built) -> None:
    image, _ = built.images["1.19.0"]
    with pytest.raises(DataError, match="is not the planned one"):
        ready(image.model_copy(update={"id": "0" * 12}))


def test_bytecode_is_there_and_never_rewritten(built) -> None:
    image, _ = built.images["1.17.0"]
    packages = next(Path(image.python).parents[1].glob("lib/python3*/site-packages"))
    compiled = next((packages / "distributed" / "__pycache__").glob("worker.cpython-*.pyc"))
    # PEP 552: flags 1 = hash-based, source not checked.
    assert compiled.read_bytes()[4:8] == b"\x01\x00\x00\x00"
    assert os.access(image.python, os.X_OK)


def small_row(folder: Path, name: str, packages: set[str]) -> Stack:
    """The first row of the table with so few of its packages that a stack takes a second to build."""
    row = stacks()[0]
    locked = re.split(r"\n(?=\S)", row.lock_file.read_text())
    (folder / f"{name}.txt").write_text("\n".join(one for one in locked if one.partition("==")[0] in packages))
    (folder / f"{name}.in").write_text("\n".join(sorted(packages)))
    return row.model_copy(update={"name": name, "lock": str(folder / f"{name}.txt")})


def test_a_variant_s_own_packages_and_its_own_stack_are_built_and_differ_in_nothing_else(
    built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [small_row(tmp_path, "first", {"toolz", "partd", "locket"}), small_row(tmp_path, "second", {"locket"})]
    monkeypatch.setattr(venvs, "stacks", lambda: tuple(rows))
    monkeypatch.setattr(venvs, "choose", lambda _wheels: rows[0])
    said: list[str] = []
    specs = ["1.19.0", "1.19.0,toolz==1.0.0", "1.19.0,stack=second"]
    (plain, before), (image, after), (other, second) = ensure(specs, built.root, said.append).values()
    assert len({plain.id, image.id, other.id}) == 3
    changed = {path: pair for path, *pair in differences(before, after) if path.startswith("stack.packages")}
    assert changed == {"stack.packages.toolz": ["1.2.0", "1.0.0"]}
    assert f"packages of {specs[1]} that differ from 1.19.0: toolz 1.2.0 -> 1.0.0" in said
    assert ask(image, "import toolz; print(toolz.__version__)").strip() == "1.0.0"
    assert (second["stack"]["name"], set(second["stack"]["packages"])) == ("second", {"locket"})
    assert {one["ucx"]["content"] for one in (before, after, second)} == {built.images["1.19.0"][1]["ucx"]["content"]}
    assert_unchanged(image)


@pytest.mark.long
@pytest.mark.parametrize(
    ("spec", "loads"),
    [("1.19.0", "cudf dask_cudf"), ("1.22.0,stack=ucxx-0.52.0", "cudf dask_cudf cudf_polars rapidsmpf")],
)
def test_a_stack_for_gpus_is_built_and_its_packages_load_without_one(tmp_path: Path, spec: str, loads: str) -> None:
    image, manifest = ensure([spec], tmp_path, print, site=load_site("local-gpu"))[spec]
    assert {"cupy-cuda12x", "cudf-cu12"} <= manifest["stack"]["packages"].keys()
    ask(image, f"import cupy, dask_cuda, {', '.join(loads.split())}", **image.env)
    version, mapped = json.loads(ask(image, LOADED, **image.env))
    assert (version, mapped) == (manifest["ucx"]["release"], [manifest["ucx"]["libucp"]])
    assert venvs.find([spec], tmp_path)[spec] is None  # that without GPUs is another


@pytest.mark.parametrize(
    ("spec", "kind", "said"),
    [
        ("1.19.0,dask==1999.1", MissingToolError, "could not install stack ucxx-0.45.1, dask 1999.1, distributed 1999"),
        ("1.19.0,dusk==2025.5.1", UsageError, r"holds no package 'dusk' \(did you mean 'dask'"),
        ("1.19.0,ucxx-cu12==0.52.0", UsageError, "belongs to the binding and can't be chosen by itself"),
        ("1.19.0,stack=ucxx-0.45", UsageError, r"there is no stack 'ucxx-0.45' \(did you mean 'ucxx-0.45.1'"),
    ],
)
def test_a_stack_that_cannot_be_is_refused_by_name(built, spec: str, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        ensure(["1.19.0", spec], built.root, lambda _line: None)
    assert not list((built.root / "venv" / ".building").glob("*"))
