"""The manual's blocks and commands, and what is wrong with a command: nothing, or one line."""

from __future__ import annotations

import dataclasses
import functools
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from typer.exceptions import TyperException

from gpubench.cli import application
from gpubench.errors import GpubenchError
from gpubench.model.variant import parse_variants
from gpubench.node.workloads.catalogue import CATALOGUE
from gpubench.resources.own_workloads import find_own, own_workloads
from gpubench.resources.profiles import load_site, load_suite
from gpubench.runtimes import RUNTIMES
from tests.conftest import ROOT, plain_environment

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
OWN_TEST = ("gallery.md",)
"""Pages whose commands another test runs."""
PLANNING = ("bench", "plan", "submit")
OTHERS = {"bsub", "cd", "kubectl", "pip", "python", "rsync", "salloc", "source", "tar"}
"""Programs that aren't ours."""
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"# (\S+\.(?:toml|py))\n")


@dataclasses.dataclass(frozen=True)
class Block:
    page: Path
    kind: str
    text: str


@dataclasses.dataclass(frozen=True)
class Command:
    """``said`` is what the page shows beside it, None where it shows nothing."""

    page: Path
    text: str
    said: str | None = None

    def __str__(self) -> str:
        return f"{self.page.name}: {self.text}"


def blocks(page: Path, *kinds: str) -> list[Block]:
    found = [Block(page, kind, text) for kind, text in BLOCK.findall(page.read_text(encoding="utf-8"))]
    return [block for block in found if block.kind in kinds] if kinds else found


def commands(page: Path) -> list[Command]:
    return [command for block in blocks(page) for command in _of_block(block)]


def _of_block(block: Block) -> Iterator[Command]:
    if block.kind == "sh":
        lines = block.text.replace("\\\n", " ").splitlines()
        yield from (Command(block.page, line) for line in lines if line.split("#")[0].strip())
    elif block.kind == "console":
        for part in block.text.removeprefix("$ ").split("\n$ "):
            line, _, said = part.partition("\n")
            yield Command(block.page, line, said)
    elif block.kind == "yaml":
        texts = _texts(yaml.safe_load(block.text))
        yield from (Command(block.page, text) for text in texts if re.match(r"make |\.venv/bin/", text))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for one in inner:
        yield from _texts(one)


def ours(text: str) -> list[list[str]]:
    """The words behind ``gpubench`` of a line of a shell: typed, or what make would run; raises ValueError."""
    words = shlex.split(text, comments=True)
    if ">>" in words:
        words = words[: words.index(">>")]
    program = Path(words[0]).name
    if program == "make":
        lines = _made(tuple(words[1:]))
        return [shlex.split(line)[1:] for line in lines if line.startswith(".venv/bin/gpubench ")]
    if "gpubench" in words[1:] and program in OTHERS:  # salloc -N8 gpubench ...
        return [words[words.index("gpubench") + 1 :]]
    if program == "gpubench":
        return [words[1:]]
    if program not in OTHERS:
        raise ValueError(f"no program {program}")
    return []


@functools.cache
def _made(words: tuple[str, ...]) -> list[str]:
    """What make says that it would do; raises ValueError where a target or a variable of it changes nothing."""
    done = subprocess.run(
        ["make", "-n", *words], cwd=ROOT, env=plain_environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ValueError(done.stderr.strip())
    for at, word in enumerate(words):
        without = words[:at] + words[at + 1 :]
        if "=" in word and _made(without) == done.stdout.splitlines():
            raise ValueError(f"make {without[0]} takes no {word.partition('=')[0]}")
    return done.stdout.splitlines()


def parse(words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The command's path and the values of its options, by the real command line; raises ValueError."""
    command, path, left = application.command(), [], list(words)
    if left and left[0] in {"--help", "-h", *(name for option in command.params for name in option.opts)}:
        return "", {}  # of gpubench itself, not of a command
    while hasattr(command, "commands"):
        if not left or left[0] not in command.commands:
            raise ValueError(f"no command {' '.join([*path, *left[:1]])}")
        path.append(left.pop(0))
        command = command.commands[path[-1]]
    try:
        return " ".join(path), command.make_context(path[-1], left).params
    except TyperException as error:
        raise ValueError(f"{error}") from None


def fault(command: str) -> str:
    """What is wrong with one line of a shell; empty: nothing. Files are looked for in the current directory."""
    try:
        for words in ours(command):
            _check_values(*parse(words))
    except (ValueError, GpubenchError) as error:
        return f"{error}"
    return ""


def _check_values(path: str, given: Mapping[str, Any]) -> None:
    settings = given.get("settings") or []
    if path == "measure":
        own = find_own(given["workload"])
        known = CATALOGUE.get(given["workload"])
        if known is None and own is None:
            raise ValueError(f"no workload {given['workload']}")
        settings = [one for one in settings if one.partition("=")[0] not in known.params]
    for key in ("site", "name") if path.startswith("sites") and path != "sites new" else ("site",):
        if isinstance(given.get(key), str) and path != "results import":
            site = load_site(given[key], settings)
    if given.get("suite"):
        suite, source = load_suite(given["suite"])
        suite.resolve(source, reps=None, timeout_s=1, own=own_workloads(suite, source.name))
    if path in PLANNING and given.get("campaign") is None and not given.get("here"):
        variants, versions = given["variants"], given["ucx"]
        parse_variants((variants or (versions or "").replace(",", " ")).split() or site.defaults.variants)
    if given.get("runtime") and given["runtime"] not in RUNTIMES:
        raise ValueError(f"no runtime {given['runtime']}")


def write_files(folder: Path) -> None:
    """Every block that says its name, as a file."""
    for page in PAGES:
        for block in blocks(page, "toml", "python"):
            if named := FILE.match(block.text):
                (folder / named[1]).write_text(block.text, encoding="utf-8")
