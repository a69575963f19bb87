"""Typed settings from TOML, and records that gpubench wrote: messages name file, line and the nearest valid key."""

import dataclasses
import difflib
import itertools
import re
import tomllib
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Self

import pydantic

from gpubench.errors import DataError, UsageError, joined
from gpubench.model.secrets import secrets
from gpubench.model.text import shortened
from gpubench.node.spec.plain import parse_json

_PART = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_TABLE = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=")
_LONG = re.compile(r'"""|' + "'''")


@dataclasses.dataclass(frozen=True)
class TomlSource:
    """What messages call a file, and the lines of its keys (``workload.0.params.size``), where they are known."""

    name: str
    lines: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def at(self, path: str) -> str:
        """``FILE:LINE`` of the key, or of the table or value that it is in; ``FILE`` where neither is known."""
        while path and path not in self.lines:
            path = path.rpartition(".")[0]
        return f"{self.name}:{self.lines[path]}" if path else self.name


def key_lines(text: str) -> dict[str, int]:
    """The first line of every table and key of a text that is TOML; lines begin at 1, entries of a list at 0."""
    lines: dict[str, int] = {}
    entries: dict[str, int] = {}
    table: list[str] = []
    inside = ""
    for number, line in enumerate(text.split("\n"), 1):
        if not inside and (header := _TABLE.match(line)):
            *above, last = _parts(header[2])
            table = [*_placed(above, entries), last]
            if header[1] == "[[":
                dotted = ".".join(table)
                entries[dotted] = entries.get(dotted, -1) + 1
                table.append(str(entries[dotted]))
            lines.setdefault(".".join(table), number)
        elif not inside and (key := _KEY.match(line)):
            lines.setdefault(".".join([*table, *_parts(key[1])]), number)
        for mark in _LONG.findall(line):
            inside = "" if inside == mark else inside or mark
    return lines


def _parts(dotted: str) -> list[str]:
    return [part.strip("\"'") for part in re.findall(_PART, dotted)]


def _placed(parts: list[str], entries: Mapping[str, int]) -> list[str]:
    """With the number of the entry behind every list of tables: the last one there is."""
    placed: list[str] = []
    for part in parts:
        placed.append(part)
        if (dotted := ".".join(placed)) in entries:
            placed.append(str(entries[dotted]))
    return placed


LONGEST_QUOTE = 100
CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")
"""What starts a new line somewhere, or means something else than a letter."""


def check_one_line(text: str) -> str:
    """``text`` as it is; raises ValueError for a control character, which can't stand in one line."""
    if CONTROL.search(text):
        raise ValueError("a control character can't stand in one line")
    return text


Line = Annotated[str, pydantic.AfterValidator(check_one_line)]
"""Text that stands in one line of a script, like a directive."""


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]*")


def between(least: float, most: float) -> pydantic.AfterValidator:
    """For a number that a person writes; in records that gpubench wrote itself any number stands (``plain``)."""

    def check(value: float, info: pydantic.ValidationInfo) -> float:
        if not (info.context or {}).get("plain") and not least <= value <= most:
            raise ValueError(f"not between {least:,} and {most:,}".replace(",", " "))
        return value

    return pydantic.AfterValidator(check)


def check_name(text: str) -> str:
    """``text`` as it is; raises ValueError for what can't be a part of a path, a job's name and a label alike."""
    if len(text) > MOST_LETTERS or not _NAME.fullmatch(text):
        raise ValueError(f"no name; use letters, digits, and . + - _ within, {MOST_LETTERS} at most")
    return text


MOST_LETTERS = 200
Name = Annotated[str, pydantic.AfterValidator(check_name)]
"""What names a file or a directory of ours, as a person writes it."""


def check_path_part(text: str) -> str:
    """``text`` as it is; raises ValueError for what leads out of the directory that it is to stand in."""
    if text in ("", ".", "..") or "/" in text or CONTROL.search(text):
        raise ValueError("no name of a file or a directory")
    return text


PathPart = Annotated[str, pydantic.AfterValidator(check_path_part)]
"""A name in a file that was written long ago, or by anybody: what is a part of a path may only be that."""


class Settings(pydantic.BaseModel):
    """Base of everything that comes from a file the user may have written."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    @classmethod
    def load(cls, text: str, source: str) -> Self:
        """Read TOML; raises UsageError for a password, an unknown or missing key, a value that doesn't fit."""
        return cls.of(parse_toml(text, source), source)

    @classmethod
    def of(cls, plain: Mapping[str, Any], source: str, at: Callable[[str], str] | None = None) -> Self:
        """Validate values that are already read; ``source`` names the file in messages, ``at`` the place of a key."""
        place = at or (lambda _path: source)
        if faults := secrets(plain, place):  # first, since other messages quote what is wrong
            raise joined(faults)
        try:
            return cls.model_validate(plain)
        except pydantic.ValidationError as error:
            wrong = _explain(cls, error).items()
            raise joined([UsageError(f"{place(path)}: {what}") for path, what in wrong]) from None


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """TOML as a dict; raises UsageError with file and line."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{source} is not TOML: {error}") from None


def takes_text(model: type[pydantic.BaseModel], path: Iterable[str]) -> bool:
    """Whether the key at ``path`` below ``model`` holds text, as every value of a table of texts does."""
    annotation = _annotation(model, path)
    return (typing.get_args(annotation)[0] if typing.get_origin(annotation) is Annotated else annotation) is str


def closest(word: str, choices: Iterable[str]) -> list[str]:
    """The one of ``choices`` that is most like ``word``, none where none is like it; a common beginning counts more.

    ``repetitions`` is more like ``reps`` than like ``description``: each of the first four letters that both share
    counts 0.1, as in Winkler's measure.
    """
    near = difflib.get_close_matches(word, sorted(choices), n=5, cutoff=0.5)

    def likeness(other: str) -> float:
        alike = sum(1 for _ in itertools.takewhile(bool, map(str.__eq__, word[:4], other)))
        return difflib.SequenceMatcher(None, other, word).ratio() + 0.1 * alike

    return [max(near, key=likeness)] if near else []


def nearest(word: str, choices: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` for the closest of ``choices``, else the whole choice."""
    choice = sorted(choices)
    if close := closest(word, choice):
        return f" (did you mean '{close[0]}'?)"
    return f" (there is: {', '.join(choice)})" if choice else ""


_ORDER = {"extra_forbidden": 0, "missing": 2}


def _explain(model: type[pydantic.BaseModel], error: pydantic.ValidationError) -> dict[str, str]:
    """What is wrong, by dotted path: unknown keys first, missing ones last."""
    details = sorted(error.errors(), key=lambda item: _ORDER.get(item["type"], 1))
    wrong: dict[str, str] = {}
    echoes: set[str] = set()
    for detail in details:
        path = [str(part) for part in detail["loc"]]
        dotted = ".".join(path) or "file"
        if detail["type"] == "extra_forbidden":
            keys = _keys(model, path[:-1])
            # A typo shows as two errors: the key that it stands for is missing.
            echoes.update(".".join([*path[:-1], key]) for key in closest(path[-1], keys))
            wrong[dotted] = f"unknown key '{dotted}'{nearest(path[-1], keys)}"
        elif detail["type"] == "missing" and dotted not in echoes:
            wrong[dotted] = f"key '{dotted}' is missing"
        elif detail["type"] != "missing":
            what = f"'{dotted}' = {quoted(detail['input'])}: {detail['msg'].removeprefix('Value error, ')}"
            wrong.setdefault(dotted, what)
    return wrong


def quoted(value: object) -> str:
    """A value as a message quotes it: what is wrong with it must find its place behind it."""
    return shortened(repr(value), LONGEST_QUOTE)


def _keys(model: type[pydantic.BaseModel], path: Iterable[str]) -> list[str]:
    """Valid keys at ``path`` below ``model``."""
    inside = _model_in(_annotation(model, path))
    return list(inside.model_fields) if inside else []


def _annotation(model: type[pydantic.BaseModel], path: Iterable[str]) -> Any:
    """The type of the key at ``path`` below ``model``; None where there is no such key."""
    annotation: Any = model
    for part in path:
        if typing.get_origin(annotation) is dict:
            annotation = typing.get_args(annotation)[1]
        elif not part.isdigit():
            inside = _model_in(annotation)
            if inside is None or part not in inside.model_fields:
                return None
            annotation = inside.model_fields[part].annotation
    return annotation


def _model_in(annotation: Any) -> type[pydantic.BaseModel] | None:
    """The settings class itself, or inside ``list[X]``, ``X | None`` and the like."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return annotation if issubclass(annotation, pydantic.BaseModel) else None
    return next(filter(None, map(_model_in, typing.get_args(annotation))), None)


class Record(Settings):
    """A file that gpubench writes itself: JSON that names its schema, with quantities as plain numbers."""

    schema_: str = pydantic.Field(alias="schema")

    model_config = pydantic.ConfigDict(populate_by_name=True)

    def dump(self) -> str:
        return self.model_dump_json(by_alias=True, indent=1) + "\n"

    @classmethod
    def parse(cls, text: str | bytes, source: str) -> Self:
        """Read it; raises DataError for text cut off or no UTF-8, another schema, or fields that don't fit."""
        schema = cls.model_fields["schema_"].default
        try:
            plain = parse_json(text)
        except ValueError:
            raise DataError(f"{source} is cut off or not JSON", then="restore it from a copy of the campaign") from None
        recorded = plain.get("schema") if isinstance(plain, dict) else None
        if recorded != schema:
            raise DataError(
                f"{source} is {recorded or 'no record of gpubench'}, not {schema}",
                then="use the gpubench that wrote it",
            )
        try:
            return cls.model_validate(plain, context={"plain": True})
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise DataError(f"{source}: '{where}': {first['msg']}") from None
