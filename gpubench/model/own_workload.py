"""A workload of the user's: a function or a class in a Python file. Read here, never run: only images have Dask."""

import ast
import dataclasses
import math
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from gpubench.errors import UsageError
from gpubench.model.base import nearest
from gpubench.workloads.catalogue.own import HASH, module_name, params_with_hash

ARGUMENTS = ("client", "params")
"""What a function is called with."""


@dataclasses.dataclass(frozen=True)
class OwnWorkload:
    """``name`` is ``FILE.py:NAME``, without the file's folder; ``source`` the content of the file."""

    name: str
    source: bytes

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of the plan: those that were given, and the file's hash; raises ValueError."""
        if HASH in given:
            raise ValueError(f"'{HASH}' is the hash of the file; give the parameter another name")
        for key, value in given.items():
            if not _is_plain(value):
                raise ValueError(f"{key} = {value!r}: write a number, text, true, false, or lists and tables of them")
        return params_with_hash(self.source, given)

    def packed(self) -> tuple[str, bytes]:
        """Path and content of the file inside ``node.pyz``."""
        return f"gpubench/workloads/{module_name(params_with_hash(self.source, {}))}.py", self.source


def parse_own(file: str, attribute: str, source: bytes, where: str) -> OwnWorkload:
    """The workload ``attribute`` of a file.

    Args:
        file: the file's name without its folder.
        where: what messages call the file.

    Raises:
        UsageError: the file isn't Python, has no such name, or what has that name can't be called as a workload.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # of the user's text, which runs elsewhere
            tree = ast.parse(source)
    except SyntaxError as error:
        at = f"{where}:{error.lineno}" if error.lineno else where
        raise UsageError(f"{at}: not Python: {error.msg}") from None
    except ValueError as error:
        raise UsageError(f"{where}: not Python: {error}") from None
    names = dict(_names(tree.body))
    if attribute not in names:
        missing = f"no function or class '{attribute}'" if attribute else "which function or class?"
        raise UsageError(f"{where}: {missing}{nearest(attribute, names)}", then=f"write {where}:NAME")
    node = names[attribute]
    if fault := _fault(node):
        raise UsageError(f"{where}:{node.lineno}: {attribute} {fault}")
    return OwnWorkload(f"{file}:{attribute}", source)


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
            handlers = [one for handler in getattr(node, "handlers", []) for one in handler.body]
            yield from _names([*node.body, *getattr(node, "orelse", []), *handlers])


def _fault(node: ast.stmt) -> str:
    """Why it can't be called as a workload; empty where it can, or where nobody knows without running the file."""
    if isinstance(node, ast.AsyncFunctionDef):
        return "is async; write a plain function"
    if isinstance(node, ast.FunctionDef):
        arguments = node.args
        most = len(arguments.posonlyargs) + len(arguments.args)
        least = most - len(arguments.defaults)
        needed = [one for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if not default]
        if needed or least > len(ARGUMENTS) or (most < len(ARGUMENTS) and not arguments.vararg):
            return f"is called with ({', '.join(ARGUMENTS)}), and takes ({ast.unparse(arguments)})"
    if isinstance(node, ast.ClassDef) and not node.bases:
        methods = dict(_names(node.body))
        if "once" not in methods:
            return "has no method 'once'; that is what is timed"
    return ""


def _is_plain(value: Any) -> bool:
    """Whether JSON can hold it."""
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))
