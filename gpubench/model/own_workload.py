"""A workload of the user's: a function or a class in a Python file. Read here, never run: only images have Dask."""

import ast
import dataclasses
import hashlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

import pydantic

from gpubench.errors import UsageError
from gpubench.model.base import Settings, nearest
from gpubench.model.formula import Formula
from gpubench.model.parameters import READERS
from gpubench.node.spec import WorkloadSpec
from gpubench.node.workloads.catalogue import Param, Shape, Workload
from gpubench.node.workloads.catalogue.own import HASH, VERSION, package_name

ARGUMENTS = ("client", "params")
"""What a function is called with."""
PLAN = "plan"
"""The attribute that tells what a plan needs to know."""
OF_THE_CLUSTER = ("nodes", "workers", "threads")
"""Names that ``held`` may use beside the parameters: nodes, workers of all nodes, threads of a worker."""

Read = Callable[[str], bytes]
"""The content of a file of the workload's folder; raises OSError."""


class PlannedParam(Settings):
    """One parameter that a workload takes."""

    kind: str
    """``count number size duration fraction flag choice name path counts``, as of the workloads that gpubench has."""
    default: Any
    """Its value where a suite gives none, as a suite writes it: ``"64KiB"``."""
    text: str = ""
    """What it means, in one line."""
    choices: tuple[str, ...] = ()
    """The values of a ``choice``."""


class PlanFacts(Settings):
    """What a plan needs to know of a workload without running its file: the literal dict ``plan``."""

    version: str = ""
    """Stands for the hash of the files in results: runs with another content, but of this version, are compared."""
    params: dict[str, PlannedParam] | None = None
    """All parameters; others are refused. Unset: it takes any."""
    backends: dict[str, tuple[str, ...]] = pydantic.Field({"dask": ()}, min_length=1)
    """Names of back-ends, each with the modules that it imports. An image that lacks one of them skips the workload."""
    devices: tuple[Literal["cpu", "gpu"], ...] = ("cpu", "gpu")
    """What its workers can run on."""
    least_workers: int = pydantic.Field(1, ge=1)
    """It needs at least so many, all nodes together."""
    held: str = ""
    """Bytes that a worker holds at a repetition's worst moment: arithmetic of the parameters (``size`` in bytes) and of
    ``workers``, ``nodes`` and ``threads`` (of a worker), like ``"3 * rows * 8 / workers"``. Empty: not known."""
    grows: dict[str, float] = pydantic.Field(default_factory=dict)
    """Parameters that ``measure --size`` changes, each with its exponent: ``held`` grows by the product."""
    source: str = "a file of yours"
    """What it comes from."""
    timed: str = "the call, and the results that it returns; of a subclass of Measurement, what its own clock covers"
    """What stands inside the clock."""
    counted: str = "`nominal_bytes` of the function or class, else none"
    """Which bytes are nominal."""
    oracle: str = "`check` of the class; without one answers are `unchecked`"
    """What can call an answer wrong."""


@dataclasses.dataclass(frozen=True)
class OwnWorkload:
    """A workload of a user's file.

    Args:
        described: as the catalogue describes its own; the name is ``FILE.py:NAME``, without the file's folder.
        files: content of the file, and of those of its folder that it imports, by name.
        version: that the file states, empty: none.
    """

    described: Workload
    files: Mapping[str, bytes]
    version: str = ""

    @property
    def identity(self) -> dict[str, str]:
        """The parameter that tells one content from another: the hash, or the version in its place."""
        if self.version:
            return {VERSION: self.version}
        (source, *others) = hashes = [hashlib.sha256(content).hexdigest() for content in self.files.values()]
        listed = "".join(f"{name} {digest}\n" for name, digest in zip(self.files, hashes, strict=True))
        return {HASH: hashlib.sha256(listed.encode()).hexdigest() if others else source}

    def with_identity(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of the plan; raises ValueError for one of the user's that has the name of ours."""
        ((name, value),) = self.identity.items()
        if HASH in params or name in params:
            taken = HASH if HASH in params else name
            raise ValueError(f"'{taken}' tells one content of the file from another; give the parameter another name")
        return {**params, name: value}

    def is_of(self, planned: WorkloadSpec) -> bool:
        return planned.name == self.described.name and self.identity.items() <= planned.params.items()

    def packed(self) -> dict[str, bytes]:
        """Paths and contents of the files inside ``node.pyz``."""
        folder = f"gpubench/node/workloads/{package_name(self.described.name, self.identity)}"
        return {f"{folder}/__init__.py": b"", **{f"{folder}/{name}": content for name, content in self.files.items()}}


def packed_together(workloads: Iterable[OwnWorkload]) -> dict[str, bytes]:
    """The files of all inside ``node.pyz``; raises UsageError where two contents say that they are one version."""
    files: dict[str, bytes] = {}
    for workload in workloads:
        for path, content in workload.packed().items():
            if files.setdefault(path, content) != content:
                raise UsageError(
                    f"two files {path.rpartition('/')[2]} differ, and both are version {workload.version} of "
                    f"{workload.described.name.rpartition(':')[0]}",
                    then="give them two versions",
                )
    return files


def parse_own(file: str, attribute: str, read: Read, where: str) -> OwnWorkload:
    """The workload ``attribute`` of a file.

    Args:
        file: the file's name without its folder.
        read: reads ``file``, and others of its folder.
        where: what messages call the file.

    Raises:
        UsageError: a file isn't there or isn't Python, has no such name, what has that name can't be called as a
            workload, or its ``plan`` can't be read.
    """
    folder = where.removesuffix(file)
    if not file.removesuffix(".py").isidentifier():
        raise UsageError(f"{where}: no name of a module", then="give the file a name of letters, digits and _")
    files: dict[str, bytes] = {}
    tree = _collect(file, "", read, folder, files)
    names = dict(_names(tree.body))
    if attribute not in names:
        own = [name for name, node in names.items() if not isinstance(node, ast.ImportFrom)]
        missing = f"no function or class '{attribute}'" if attribute else "which function or class?"
        raise UsageError(f"{where}: {missing}{nearest(attribute, own or names)}", then=f"write {where}:NAME")
    node = names[attribute]
    if fault := _fault(node):
        raise UsageError(f"{where}:{node.lineno}: {attribute} {fault}")
    facts, place = _plan(tree, attribute, node, where)
    others = {name: files[name] for name in sorted(files) if name != file}
    described = _described(f"{file}:{attribute}", facts, place)
    return OwnWorkload(described, {file: files[file], **others}, facts.version)


def _collect(file: str, statement: str, read: Read, folder: str, files: dict[str, bytes]) -> ast.Module:
    """The file, read and parsed; its content, and that of all files of the folder that it imports, goes to ``files``.

    ``statement`` is the place of the import, empty for the first file.
    """
    try:
        files[file] = read(file)
    except OSError as error:
        why = f"can't read {folder}{file}: {error.strerror}"
        if statement:
            raise UsageError(f"{statement}: {why}", then="only files beside it are imported by a dot") from None
        raise UsageError(why, then="write FILE.py:NAME") from None
    tree = _parsed(files[file], folder + file)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            place = f"{folder}{file}:{node.lineno}"
            if node.level > 1 or "." in (node.module or ""):
                raise UsageError(
                    f"{place}: imports from another folder", then="only files of the workload's own folder are packed"
                )
            for module in [node.module] if node.module else [alias.name for alias in node.names]:
                if f"{module}.py" not in files:
                    _collect(f"{module}.py", place, read, folder, files)
    return tree


def _parsed(source: bytes, where: str) -> ast.Module:
    try:
        with warnings.catch_warnings(action="ignore"):  # of the user's text, which runs elsewhere
            return ast.parse(source)
    except SyntaxError as error:
        at = f"{where}:{error.lineno}" if error.lineno else where
        raise UsageError(f"{at}: not Python: {error.msg}") from None
    except ValueError as error:
        raise UsageError(f"{where}: not Python: {error}") from None


def _plan(tree: ast.Module, attribute: str, node: ast.stmt, where: str) -> tuple[PlanFacts, str]:
    """What ``plan`` says, of the class's body or assigned as ``NAME.plan``, and its place; raises UsageError."""
    inside = [(PLAN, statement) for statement in (node.body if isinstance(node, ast.ClassDef) else [])]
    outside = [(f"{attribute}.{PLAN}", statement) for statement in tree.body]
    for target, statement in inside + outside:
        if target not in _assigned(statement):
            continue
        place = f"{where}:{statement.lineno}: {PLAN}"
        try:
            facts = ast.literal_eval(statement.value)  # type: ignore[attr-defined]
        except (TypeError, ValueError):
            raise UsageError(
                f"{place} is no literal", then="write a dict of constants: it is read, and the file is not run"
            ) from None
        if not isinstance(facts, dict) or not all(isinstance(key, str) for key in facts):
            raise UsageError(f"{place} is no dict with names as keys")
        return PlanFacts.of(facts, place), place
    return PlanFacts(), where


def _assigned(statement: ast.stmt) -> list[str]:
    """What a statement gives a value to, also with an annotation."""
    match statement:
        case ast.Assign(targets=targets):
            return [ast.unparse(target) for target in targets]
        case ast.AnnAssign(target=target, value=value) if value:
            return [ast.unparse(target)]
    return []


def _names(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Names that a module's statements define, those within if, try and with too."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Assign):
            yield from ((target.id, node) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.asname or alias.name, node) for alias in node.names)
        elif isinstance(node, ast.If | ast.Try | ast.With):
            handlers = [statement for handler in getattr(node, "handlers", []) for statement in handler.body]
            yield from _names([*node.body, *getattr(node, "orelse", []), *handlers])


def _fault(node: ast.stmt) -> str:
    """Why it can't be called as a workload; empty where it can, or where nobody knows without running the file."""
    if isinstance(node, ast.AsyncFunctionDef):
        return "is async; write a plain function"
    if isinstance(node, ast.FunctionDef):
        arguments = node.args
        most = len(arguments.posonlyargs) + len(arguments.args)
        least = most - len(arguments.defaults)
        needed = [
            argument
            for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if not default
        ]
        if needed or least > len(ARGUMENTS) or (most < len(ARGUMENTS) and not arguments.vararg):
            return f"is called with ({', '.join(ARGUMENTS)}), and takes ({ast.unparse(arguments)})"
    if isinstance(node, ast.ClassDef) and not node.bases:
        methods = dict(_names(node.body))
        if "once" not in methods:
            return "has no method 'once'; that is what is timed"
    return ""


def _described(name: str, facts: PlanFacts, place: str) -> Workload:
    """The entry of the catalogue that the facts make; raises UsageError."""
    params: dict[str, Param] = {}
    for key, param in (facts.params or {}).items():
        at = f"{place}: params.{key}"
        if param.kind not in READERS:
            raise UsageError(f"{at}: no kind '{param.kind}'{nearest(param.kind, READERS)}")
        unread = Param(param.kind, param.default, param.text, param.choices)
        try:
            default = READERS[param.kind](unread, param.default)
        except ValueError as error:
            raise UsageError(f"{at}: default = {param.default!r}: {error}") from None
        params[key] = dataclasses.replace(unread, default=default)
    if unknown := [key for key in facts.grows if key not in params]:
        raise UsageError(f"{place}: grows: no parameter '{unknown[0]}'{nearest(unknown[0], params)}")
    try:
        formula = Formula(facts.held or "0", {*params, *OF_THE_CLUSTER})
    except ValueError as error:
        raise UsageError(f"{place}: held: {error}") from None

    def held(values: Mapping[str, Any], shape: Shape) -> int:
        cluster = zip(OF_THE_CLUSTER, (shape.nodes, shape.workers, shape.threads_per_worker), strict=True)
        return max(0, int(formula({**values, **dict(cluster)})))

    def fault(_backend: str, values: Mapping[str, Any]) -> str:
        try:
            held(values, Shape(1, facts.least_workers, 1))
        except (ArithmeticError, TypeError, ValueError) as error:
            return f"held = {facts.held}: {error}"
        return ""

    if wrong := fault("", {key: param.default for key, param in params.items()}):
        raise UsageError(f"{place}: {wrong}")
    return Workload(
        name=name,
        factory="own:OwnMeasurement",
        family="own",
        source=facts.source,
        scaling="none",
        params=params,
        timed=facts.timed,
        counted=facts.counted,
        oracle=facts.oracle,
        backends=tuple(facts.backends),
        devices=facts.devices,
        held=held,
        held_text=facts.held or "not known, so it isn't checked",
        grows=tuple(facts.grows.items()),
        least_workers=facts.least_workers,
        needs=facts.backends,
        takes_any=facts.params is None,
        fault=fault,
    )
