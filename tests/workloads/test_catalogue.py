"""The catalogue promises; these tests hold it to the code."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gpubench.workloads
from gpubench.model.suite import Suite
from gpubench.workloads import bindings, families
from gpubench.workloads.base import Context, Measurement
from gpubench.workloads.catalogue import CATALOGUE

FOLDER = Path(gpubench.workloads.__file__).parent
SUITES = Path(__file__).parents[2] / "suites"
OPTIONAL = {"cupy": {"device.py"}, "cudf": {"device.py"}, "ucxx": {"bindings/ucxx.py"}, "ucp": {"bindings/ucx_py.py"}}
IMAGE_HAS = {"dask", "distributed", "numpy", "pandas", "gpubench"}


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_workload_has_the_class_that_the_catalogue_names(name: str) -> None:
    module, _, kind = CATALOGUE[name].factory.partition(":")
    found = getattr(importlib.import_module(f"gpubench.workloads.{module}"), kind)
    assert issubclass(found, Measurement)
    assert not found.__abstractmethods__
    assert CATALOGUE[name].name == name


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_parameter_says_what_it_is_and_has_a_default_of_its_kind(name: str) -> None:
    workload = CATALOGUE[name]
    assert all((workload.timed, workload.counted, workload.oracle))
    for param in workload.params.values():
        assert param.text
        kinds = {"count": int, "size": int, "fraction": float, "flag": bool, "choice": str}
        assert type(param.default) is kinds[param.kind]
        assert (param.kind == "choice") == bool(param.choices)
        assert not param.choices or param.default in param.choices


def test_the_catalogue_is_importable_where_there_is_no_dask() -> None:
    code = (
        "import sys, gpubench.workloads.catalogue; print(*{'dask', 'distributed', 'numpy', 'pandas'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_the_quick_suite_measures_every_workload_few_times() -> None:
    suite = Suite.model_validate(tomllib.loads((SUITES / "quick.toml").read_text()))
    resolved = suite.resolve("quick.toml", reps=None, timeout_s=60.0)
    assert {entry.name for entry in resolved} == set(CATALOGUE)
    assert [entry.params["size"] for entry in resolved if entry.name == "message"] == [1024, 10_000_000]
    assert {(entry.reps, entry.warmup) for entry in resolved if entry.name != "message"} == {(3, 1), (4, 1)}
    (merge,) = (entry for entry in resolved if entry.name == "merge")
    assert merge.params == {"rows_per_worker": 200_000, "frac_match": 0.3, "join": "default"}


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_file_imports_only_what_every_image_has_or_the_optional_library_it_is_for(path: Path) -> None:
    here = str(path.relative_to(FOLDER))
    for name in imported(path) - IMAGE_HAS - set(sys.stdlib_module_names):
        assert here in OPTIONAL.get(name, set()), f"{here} imports {name}"


def test_every_binding_has_its_adapter_file() -> None:
    assert set(bindings.ADAPTERS) == {"tcp", "ucxx", "ucx-py"}
    assert all((FOLDER / "bindings" / f"{module}.py").is_file() for module in bindings.ADAPTERS.values())
    with pytest.raises(ValueError, match="no adapter for binding 'mpi'"):
        bindings.adapter("mpi")


@pytest.mark.parametrize(
    ("name", "backend", "device", "params", "message"),
    [
        ("sort", "dask", "cpu", {}, "no workload"),
        ("tasks", "parsl", "cpu", {"count": 1}, "no backend"),
        ("tasks", "dask", "tpu", {"count": 1}, "doesn't run on"),
        ("tasks", "dask", "cpu", {"counts": 1}, "takes"),
        ("tasks", "dask", "cpu", {}, "takes"),
    ],
)
def test_what_the_catalogue_does_not_know_is_refused(
    name: str, backend: str, device: str, params: dict[str, int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        families.create(name, Context(None, [], 1, device, "tcp"), backend, params)
