"""What may import what: the two halves, the layers, and every optional library in its own file."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpubench import resources

ROOT = resources.PACKAGE.parent
NODE_HALF = sorted(resources.node_half())

# What Python 3.9 doesn't have yet; `sys.stdlib_module_names` speaks of the Python that runs the tests.
NEWER_THAN_39 = {"annotationlib", "compression", "tomllib"}
STANDARD = sys.stdlib_module_names - NEWER_THAN_39

# The libraries of the image that each file of the node half imports, exactly; every other file imports none.
LIBRARIES: dict[str, set[str]] = {
    "gpubench/node/admission.py": {"distributed"},
    "gpubench/node/client.py": {"dask", "distributed"},
    "gpubench/node/cluster_follower.py": {"distributed"},
    "gpubench/node/gpu_worker.py": {"dask_cuda"},
    "gpubench/node/inspect_cluster.py": {"distributed"},
    "gpubench/node/inspect_process.py": {"numpy"},
    "gpubench/node/dask_processes.py": {"distributed", "numba"},
    "gpubench/node/worker_registry.py": {"distributed"},
    "gpubench/node/workloads/arrays.py": {"dask", "numpy"},
    "gpubench/node/workloads/bindings.py": {"distributed", "distributed_ucxx", "ucp", "ucxx"},
    "gpubench/node/workloads/copy.py": {"numpy"},
    "gpubench/node/workloads/dask_compat.py": {"dask", "distributed"},
    "gpubench/node/workloads/device.py": {"cudf", "cupy", "dask", "dask_cudf", "numpy", "pandas", "rmm"},
    "gpubench/node/workloads/frames.py": {"dask", "distributed"},
    "gpubench/node/workloads/link.py": {"distributed"},
    "gpubench/node/workloads/explicit_comms.py": {"dask", "dask_cuda"},
    "gpubench/node/workloads/merge.py": {"distributed"},
    "gpubench/node/workloads/message.py": {"distributed", "numpy"},
    "gpubench/node/workloads/lazy.py": {"distributed"},
    "gpubench/node/workloads/own.py": {"dask", "distributed"},
    "gpubench/node/workloads/parquet_files.py": {"numpy", "pyarrow"},
    "gpubench/node/workloads/parsl_pods.py": {"kubernetes"},
    "gpubench/node/workloads/random_blocks.py": {"dask", "distributed", "numpy"},
    "gpubench/node/workloads/tasks.py": {"distributed"},
    "gpubench/node/workloads/tasks_parsl.py": {"parsl"},
    "gpubench/node/workloads/weak_arrays.py": {"dask", "numpy"},
    "gpubench/node/workloads/weak_frames.py": {"dask", "numpy"},
    "gpubench/node/workloads/weak_task.py": {"distributed"},
}
IN_EVERY_IMAGE = {"dask", "distributed", "numpy", "pandas"}
IMPORTS_BY_NAME = {
    "gpubench/node/workloads/families.py",
    "gpubench/node/workloads/own.py",
    "gpubench/node/workloads/task_clients.py",
}


def imported(tree: ast.AST) -> Iterator[str]:
    """Dotted names of the modules that a file imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names if (node.module or "") in _PACKAGES)


_PACKAGES = {"gpubench", "gpubench.node", *(f"gpubench.node.{package}" for package in ("spec", "workloads", "writer"))}


def tree(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NODE_HALF)
def test_the_node_half_imports_the_standard_library_itself_and_what_its_image_surely_has(name: str) -> None:
    found = set(imported(tree(name)))
    libraries = {module.partition(".")[0] for module in found} - STANDARD - {"gpubench"}
    assert libraries == LIBRARIES.get(name, set())
    own = {module.split(".")[1] for module in found if module.startswith("gpubench.")}
    assert own <= {"node", "__version__"}


def test_no_file_of_the_list_is_gone() -> None:
    assert set(LIBRARIES) | IMPORTS_BY_NAME <= set(NODE_HALF)


def test_a_library_that_an_image_may_lack_is_imported_in_one_file_of_a_package_only() -> None:
    optional = [
        (str(Path(file).parent), library)
        for file, libraries in LIBRARIES.items()
        for library in libraries - IN_EVERY_IMAGE
    ]
    assert len(optional) == len(set(optional))


def test_optional_libraries_of_shared_files_are_imported_inside_functions() -> None:
    for name in (
        "gpubench/node/client.py",
        "gpubench/node/gpu_worker.py",
        "gpubench/node/dask_processes.py",
        "gpubench/node/workloads/device.py",
    ):
        top = ast.Module([node for node in tree(name).body if isinstance(node, ast.Import | ast.ImportFrom)], [])
        assert not {module.partition(".")[0] for module in imported(top)} & LIBRARIES[name], name


def test_only_three_files_import_by_name() -> None:
    for name in NODE_HALF:
        words = {node.id for node in ast.walk(tree(name)) if isinstance(node, ast.Name)}
        attributes = {node.attr for node in ast.walk(tree(name)) if isinstance(node, ast.Attribute)}
        by_name = {"__import__", "import_module"} & (words | attributes)
        assert bool(by_name) == (name in IMPORTS_BY_NAME), name


def test_the_tool_imports_of_the_node_half_only_the_spec_and_the_catalogue() -> None:
    for path in resources.PACKAGE.rglob("*.py"):
        name = str(path.relative_to(ROOT))
        if name in NODE_HALF:
            continue
        for module in imported(ast.parse(path.read_text(encoding="utf-8"))):
            if module.startswith("gpubench.node"):
                assert module.startswith(("gpubench.node.spec", "gpubench.node.workloads.catalogue")), (
                    f"{name}: {module}"
                )


def lint(directory: Path) -> tuple[int, str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--config", "pyproject.toml"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def test_every_layer_imports_only_what_stands_below_it() -> None:
    code, said = lint(ROOT)
    assert code == 0, said


def test_a_breach_of_any_contract_is_found(tmp_path: Path) -> None:
    shutil.copytree(resources.PACKAGE, tmp_path / "gpubench", ignore=shutil.ignore_patterns("__pycache__", "_data"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    breaches = {
        "gpubench/model/base.py": "import gpubench.plan",
        "gpubench/results/merge/table.py": "import gpubench.results.fsck",
        "gpubench/node/writer/atomic.py": "import gpubench.node.rank",
        "gpubench/files.py": "import gpubench.node.writer.atomic",
        "gpubench/node/spec/plain.py": "import gpubench.errors",
        "gpubench/plan/block_design.py": "import socket",
    }
    for name, line in breaches.items():
        path = tmp_path / name
        path.write_text(path.read_text() + f"\n\ndef breach() -> None:\n    {line}\n")
    code, said = lint(tmp_path)
    assert code == 1
    contracts = re.findall(r" (KEPT|BROKEN)(?: \(\d+ ignored imports?\))?$", said, flags=re.MULTILINE)
    assert contracts == ["BROKEN"] * len(breaches), said


def test_a_new_package_must_find_its_layer(tmp_path: Path) -> None:
    shutil.copytree(resources.PACKAGE, tmp_path / "gpubench", ignore=shutil.ignore_patterns("__pycache__", "_data"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "gpubench" / "novelty").mkdir()
    (tmp_path / "gpubench" / "novelty" / "__init__.py").touch()
    code, said = lint(tmp_path)
    assert code == 1
    assert "novelty" in said


def test_no_public_class_name_stands_for_two_things() -> None:
    names = Counter(
        node.name
        for path in resources.PACKAGE.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []
