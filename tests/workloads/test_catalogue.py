"""The catalogue promises; these tests hold it to the code."""

import ast
import importlib
import importlib.util
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gpubench.node.workloads
from gpubench.model.suite import Suite
from gpubench.node.workloads import bindings
from gpubench.node.workloads.base import Measurement
from gpubench.node.workloads.catalogue import CATALOGUE, Shape

FOLDER = Path(gpubench.node.workloads.__file__).parent
SUITES = Path(__file__).parents[2] / "suites"
OPTIONAL = {
    "cupy": {"device.py"},
    "cudf": {"device.py"},
    "dask_cudf": {"device.py"},
    "rmm": {"device.py"},
    "ucxx": {"bindings.py"},
    "distributed_ucxx": {"bindings.py"},
    "ucp": {"bindings.py"},
    "parsl": {"tasks_parsl.py"},
    "kubernetes": {"parsl_pods.py"},
    "dask_cuda": {"explicit_comms.py"},
    "pyarrow": {"parquet_files.py"},
}
NOTHING_MUST_MOVE = {
    # Each block is worked on where it lies; at most a small result moves to the client.
    *("copy", "tasks"),
    *("weak-array-create", "weak-array-blockwise", "weak-array-access", "weak-array-elementwise"),
    *("weak-frame-create", "weak-frame-blockwise", "weak-frame-access"),
    # It reads files: where Dask reads which part is its own choice, and how a query is planned, too.
    "read-parquet",
}
"""Workloads that may end without a byte between workers. Whoever adds one here has thought about it."""
IMAGE_HAS = {"dask", "distributed", "numpy", "pandas", "gpubench"}


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_workload_has_the_class_that_the_catalogue_names(name: str) -> None:
    module, _, kind = CATALOGUE[name].factory.partition(":")
    found = getattr(importlib.import_module(f"gpubench.node.workloads.{module}"), kind)
    assert issubclass(found, Measurement)
    assert not found.__abstractmethods__
    assert CATALOGUE[name].name == name


def test_a_workload_says_how_many_bytes_must_move_or_is_known_to_need_none() -> None:
    """With the default, 0, a run whose data never moved would pass the check."""
    silent = set()
    for name, workload in CATALOGUE.items():
        module, _, kind = workload.factory.partition(":")
        found = getattr(importlib.import_module(f"gpubench.node.workloads.{module}"), kind)
        if found.least_moved_bytes is Measurement.least_moved_bytes:
            silent.add(name)
    assert silent == NOTHING_MUST_MOVE


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_parameter_says_what_it_is_and_has_a_default_of_its_kind(name: str) -> None:
    workload = CATALOGUE[name]
    assert all((workload.timed, workload.counted, workload.oracle, workload.source, workload.held_text))
    assert workload.graph in ("timed", "before the clock", "none")
    assert {name for name, _ in workload.grows} <= set(workload.params)
    assert set(workload.needs) <= set(workload.backends)
    for param in workload.params.values():
        assert param.text
        kinds = {
            "count": int,
            "counts": list,
            "size": int,
            "duration": float,
            "fraction": float,
            "number": float,
            "flag": bool,
        }
        assert type(param.default) is kinds.get(param.kind, str)
        assert (param.kind == "choice") == bool(param.choices)
        assert not param.choices or param.default in param.choices


def test_the_catalogue_is_importable_where_there_is_no_dask() -> None:
    libraries = {"dask", "distributed", "numpy", "pandas"}
    code = f"import sys, gpubench.node.workloads.catalogue; print(*{libraries} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_larger_preset_of_a_workload_holds_more_and_so_does_a_smaller_cluster_of_the_same_sizes(name: str) -> None:
    workload = CATALOGUE[name]
    defaults = {key: param.default for key, param in workload.params.items()}
    larger = defaults | {key: int(defaults[key] * 100**exponent) for key, exponent in workload.grows}
    shape = Shape(nodes=2, workers_per_node=2, threads_per_worker=1)
    held = workload.held(defaults, shape)
    assert held == 0 or workload.held(larger, shape) == pytest.approx(100 * held, rel=0.2)


def test_the_draco_suite_has_the_clients_of_its_campaigns_and_the_site_runs_it_unasked() -> None:
    suite = Suite.model_validate(tomllib.loads((SUITES / "draco.toml").read_text()))
    resolved = suite.resolve("draco.toml", reps=None, timeout_s=60.0)
    assert [(entry.name, entry.backend) for entry in resolved] == [
        ("merge", "dask"),
        ("merge", "explicit-comms"),
        ("transpose-sum", "dask"),
    ]
    assert {(entry.reps, entry.warmup) for entry in resolved} == {(30, 1)}
    for entry in resolved:
        sizes = [40_000_000, 0.6] if entry.name == "merge" else [50_000, 2500]
        names = ["rows_per_worker", "frac_match"] if entry.name == "merge" else ["size", "chunk"]
        assert [entry.params[name] for name in names] == sizes
    site = tomllib.loads((SUITES.parent / "sites" / "draco.toml").read_text())
    assert site["defaults"]["suite"] == "draco"


def test_the_full_suite_runs_every_workload_with_every_back_end() -> None:
    full = Suite.model_validate(tomllib.loads((SUITES / "full.toml").read_text()))
    everything = {(name, backend) for name, workload in CATALOGUE.items() for backend in workload.backends}
    found = [(entry.name, entry.backend) for entry in full.resolve("full.toml", reps=None, timeout_s=60.0)]
    assert (set(found), len(found)) == (everything, len(everything))


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_file_imports_only_what_every_image_has_or_the_optional_library_it_is_for(path: Path) -> None:
    here = str(path.relative_to(FOLDER))
    for name in imported(path) - IMAGE_HAS - set(sys.stdlib_module_names):
        assert here in OPTIONAL.get(name, set()), f"{here} imports {name}"


def test_every_binding_has_its_adapter() -> None:
    assert set(bindings.ADAPTERS) == {"tcp", "ucxx", "ucx-py"}
    assert isinstance(bindings.ADAPTERS["tcp"](), bindings.Tcp)
    for binding, library in (("ucxx", "ucxx"), ("ucx-py", "ucp")):
        if importlib.util.find_spec(library) is None:
            with pytest.raises(ModuleNotFoundError, match=library):
                bindings.ADAPTERS[binding]()
        else:
            assert isinstance(bindings.ADAPTERS[binding](), bindings.Endpoints)
