"""Dataclasses to and from plain JSON values, strictly: an unknown or missing key is an error."""

import copy
import dataclasses
import functools
import hashlib
import json
import re
from typing import Any, ClassVar, Dict, FrozenSet, List, Mapping, Tuple, Type, TypeVar, Union

T = TypeVar("T")


class SpecError(ValueError):
    """A document is not what its schema says."""


def from_plain(kind: Type[T], plain: Mapping[str, Any]) -> T:
    """Build the dataclass ``kind`` from ``plain``.

    Raises:
        SpecError: ``plain`` is no object, lacks a field without default, or has one that ``kind`` doesn't know.
    """
    if not isinstance(plain, (dict, Mapping)):
        raise SpecError(f"{kind.__name__} is not an object but {plain!r}")
    fields, needed = _fields(kind)  # type: ignore[arg-type]
    if not plain.keys() <= fields:
        raise SpecError("{} has no field {}".format(kind.__name__, ", ".join(sorted(plain.keys() - fields))))
    if not plain.keys() >= needed:
        missing = [field.name for field in dataclasses.fields(kind) if field.name in needed - plain.keys()]  # type: ignore[arg-type]
        raise SpecError("{} lacks {}".format(kind.__name__, ", ".join(missing)))
    return kind(**plain)


@functools.cache
def _fields(kind: Any) -> Tuple[FrozenSet[str], FrozenSet[str]]:
    """All fields of a dataclass, and those without a default; once, for tens of thousands of records."""
    fields = dataclasses.fields(kind)
    needed = [f.name for f in fields if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING]
    return frozenset(field.name for field in fields), frozenset(needed)


def to_plain(value: Any) -> Any:
    """The JSON-ready form of a dataclass (recursively), of which nothing is shared with it.

    As ``dataclasses.asdict``, in a third of its time: tens of thousands of specs are written so.
    """
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is dict:
        return {name: to_plain(inner) for name, inner in value.items()}
    if kind in (list, tuple):
        return kind([to_plain(inner) for inner in value])
    if dataclasses.is_dataclass(kind):
        return {name: to_plain(getattr(value, name)) for name in _names(kind)}
    return copy.deepcopy(value)


_ATOMS = frozenset((str, int, float, bool, type(None)))


@functools.cache
def _names(kind: Any) -> Tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def to_json(value: Any) -> str:
    """Indented JSON text of a dataclass, for a file that a person can read."""
    return json.dumps(to_plain(value), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def parse_json(text: Union[str, bytes]) -> Any:
    """A JSON document that others may have written.

    Raises:
        ValueError: it isn't JSON, it is nested too deeply, or a text in it is no Unicode: ``json`` reads the half of a
            surrogate pair, which no file, table or terminal takes.
    """
    try:
        text = text if isinstance(text, str) else text.decode("utf-8")
        plain = json.loads(text)
        if ("\\u" in text or not text.isascii()) and _MAYBE_HALF.search(text):
            canonical(plain)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return plain


_MAYBE_HALF = re.compile(r"\\u[dD]|[\ud800-\udfff]")


def parse_object(text: str, schema: str, source: str = "") -> Dict[str, Any]:
    """The JSON object in ``text``, which names ``schema``; ``source`` begins the messages.

    Raises:
        SpecError: not JSON, no object, or another schema.
    """
    what = f"{source} is not" if source else "not"
    try:
        plain = parse_json(text)
    except ValueError as error:
        raise SpecError(f"{what} JSON: {error}") from error
    if not isinstance(plain, dict) or plain.get("schema") != schema:
        raise SpecError(f"{what} a {schema}")
    return plain


D = TypeVar("D", bound="Document")


class Document:
    """A dataclass that is a JSON file of its own, with a field ``schema``; ``PARTS`` are those within it."""

    SCHEMA: ClassVar[str] = ""
    PARTS: ClassVar[Mapping[str, Any]] = {}

    def dump(self) -> str:
        """JSON text, for a file that a person can read."""
        return to_json(self)

    @classmethod
    def parse(cls: Type[D], text: str, source: str = "") -> D:
        """Read it; ``source`` begins messages. Raises SpecError: no JSON, another schema, missing or unknown fields."""
        plain = parse_object(text, cls.SCHEMA, source)
        for name, kind in cls.PARTS.items():
            part: Any = plain.get(name)
            plain[name] = [from_plain(kind, row) for row in part] if isinstance(part, list) else from_plain(kind, part)
        return from_plain(cls, plain)


def canonical(value: Any) -> bytes:
    """One byte string per value: sorted keys, no blanks, UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8")


def content_id(value: Any, length: int = 12) -> str:
    """The first ``length`` hex digits of the SHA-256 of the canonical form of ``value``."""
    return hashlib.sha256(canonical(value)).hexdigest()[:length]


def parse_lines(text: str) -> List[Dict[str, Any]]:
    """The objects of a JSON-lines text; a last line that was cut off by a crash is left out.

    Raises:
        SpecError: a line other than the last isn't JSON.
    """
    lines = text.split("\n")
    rows: List[Dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            rows.append(parse_json(line))
        except ValueError as error:
            if number == len(lines):
                break
            raise SpecError(f"line {number} is not JSON") from error
    return rows
