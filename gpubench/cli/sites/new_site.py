"""``gpubench sites new``: a profile of this machine's site to begin with, every guess marked as one."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path

import tomli_w

from gpubench import resources
from gpubench.cli.say import say
from gpubench.cli.sites.survey import PROGRAMS, Guess, Survey, runtimes_here, scheduler_here, survey
from gpubench.errors import PlanRefusedError, UsageError
from gpubench.files import create_exclusively
from gpubench.model.base import check_name, nearest
from gpubench.plan.adapter_combinations import VALID

FILL_IN = "# fill in:"
COLUMN = 36


def new_site(name: str, scheduler: str | None, launcher: str | None, runtime: str | None, folder: Path) -> None:
    """Ask the machine, and write ``NAME.toml``.

    Raises:
        UsageError: no such name can be, the file exists, an adapter doesn't exist.
        PlanRefusedError: the adapters don't go together.
    """
    try:
        check_name(name)
    except ValueError as error:
        raise UsageError(f"'{name}': {error}") from None
    path = folder / f"{name}.toml"
    exists = UsageError(f"{path} exists already, and is left as it is", then="take another name, or --out FOLDER")
    if path.exists():
        raise exists
    adapters = _adapters(scheduler, launcher, runtime)
    found = survey(str(adapters["scheduler"].value))
    text = "\n".join(_lines(name, path, adapters, found)) + "\n"
    try:
        create_exclusively(path, text)
    except FileExistsError:
        raise exists from None
    for line in found.unanswered:
        say(f"not asked: {line}")
    say(f"{path}: {text.count('# guess:')} guesses, {text.count(FILL_IN)} to fill in")
    say(f"next: gpubench sites check {path}")


def _adapters(scheduler: str | None, launcher: str | None, runtime: str | None) -> dict[str, Guess]:
    """Scheduler, launcher and runtime: as asked, else what is here and goes with the others."""
    given = {"scheduler": scheduler, "launcher": launcher, "runtime": runtime}
    for at, (kind, word) in enumerate(given.items()):
        if word is not None and word not in (known := {words[at] for words in VALID}):
            raise UsageError(f"there is no {kind} '{word}'{nearest(word, known)}")
    first = scheduler_here() if scheduler is None else Guess(scheduler, "")
    fitting = [
        words
        for words in sorted(VALID)
        if words[0] == first.value
        and all(asked in (None, word) for asked, word in zip(given.values(), words, strict=True))
    ]
    if not fitting:
        wanted = " + ".join(filter(None, (str(first.value), launcher, runtime)))
        raise PlanRefusedError(
            f"{wanted} don't go together",
            then="they go together: "
            + "; ".join(" + ".join(words) for words in sorted(VALID) if words[0] == first.value),
        )
    here = runtimes_here(dict.fromkeys(words[2] for words in fitting))
    chosen = next((words for word in here for words in fitting if words[2] == word), fitting[0])
    why = "its program is on this machine" if PROGRAMS[chosen[2]] and chosen[2] in here else "needs no program"
    why = why if chosen[2] in here else "none of the runtimes' programs is on this machine"
    return {
        "scheduler": first,
        "launcher": Guess(chosen[1], "" if launcher else f"goes with {chosen[0]}"),
        "runtime": Guess(chosen[2], "" if runtime else why),
    }


def _lines(name: str, path: Path, adapters: dict[str, Guess], found: Survey) -> Iterator[str]:
    yield f"#:schema {resources.schema('site').as_uri()}"
    yield f"# Site {name}, as `gpubench sites new` found it from {platform.node()}. A guess says where a value"
    yield "# comes from: compare it with the site's manual and with a compute node, and delete the comment. Then:"
    yield f"#   gpubench sites check {path}"
    yield f"#   gpubench sites check {path} --live    # a two-minute job: is the site as this file says?"
    yield "# All keys: `gpubench sites show draco` is a whole profile; docs/site-keys.md explains each."
    yield _key("name", Guess(name, ""))
    yield _key("description", found.found.get("description", Guess("", "")))
    for kind, guess in adapters.items():
        yield _key(kind, guess)
    runtime = str(adapters["runtime"].value)
    if PROGRAMS[runtime] and not runtimes_here([runtime]):
        yield f"# {' or '.join(PROGRAMS[runtime])} is not on this machine; the compute nodes need it."
    gpus = found.found.get("node.gpus")
    yield _key("device", Guess("gpu", gpus.source) if gpus else Guess("cpu", "no GPU was found from this machine"))
    yield _key("protocol", Guess("ucx", ""))
    yield from _note(found, "interface")
    yield _key("interface", found.found.get("interface"), "the compute nodes' network interface, as `ip link` names it")
    yield _key("env_allow", Guess(["LANG", "LC_ALL", "PATH", "TZ", "USER"], ""))
    yield from _note(found, "expect_transport")
    yield '# expect_transport = ["tcp"]      # a run that used another transport is failed'
    yield from _note(found, "env")
    yield '# env = { UCX_NET_DEVICES = "mlx5_0:1" }   # variables of every process of a run'
    yield from _tables(found)


def _tables(found: Survey) -> Iterator[str]:
    gpus = found.found.get("node.gpus")
    yield "\n[layout]"
    yield _key("workers", Guess(gpus.value, "one worker for each GPU") if gpus else Guess(2, "to begin with"))
    yield _key("threads", Guess(1, "to begin with"))
    if one_machine := found.found.get("layout.one_machine"):
        yield _key("one_machine", one_machine)
    yield "\n[node]"
    yield from _keys(found, "node", "cores", "gpus", "gpu_memory")
    if memory := found.found.get("node.memory"):
        yield f"# {_key('memory', memory)}; a job would ask for all of it"
    yield "\n[batch]"
    yield from _note(found, "batch.queue")
    yield _key("queue", found.found["batch.queue"]) if "batch.queue" in found.found else '# queue = ""'
    yield '# account = ""                    # if the site charges one'
    yield '# options = ["--exclusive"]       # further directives of the job script'
    if limit := found.found.get("limits.job"):
        yield "\n[limits]"
        yield _key("job", limit)
    yield "\n[paths]"
    shared = found.found.get("paths.shared")
    yield _key("shared", shared) if shared else '# shared = ["/home"]               # file systems that every node sees'
    yield '# images = "$HOME/gpubench/images"  # where every node sees it'
    yield "\n[image]"
    yield _key("architecture", Guess(platform.machine(), "this machine"))
    yield from _keys(found, "image", "cuda", "compute_capability")
    yield "\n[defaults]"
    yield _key("variants", Guess(["1.17.0", "1.19.0"], "two UCX versions; the first is the baseline"))
    nodes = found.found.get("nodes")
    counts = [1, 2] if nodes and isinstance(nodes.value, int) and nodes.value > 1 else [1]
    yield _key("nodes", Guess(counts, "to begin with"))


def _keys(found: Survey, table: str, *names: str) -> Iterator[str]:
    """Those of the table that were found."""
    yield from (_key(name, found.found[f"{table}.{name}"]) for name in names if f"{table}.{name}" in found.found)


def _key(name: str, guess: Guess | None, what: str = "") -> str:
    """``name = value``, with where it comes from; empty and to be filled in where nothing was found."""
    if guess is None:
        return f'{name} = ""'.ljust(COLUMN) + f"{FILL_IN} {what}"
    line = f"{name} = {_toml(guess.value)}"
    return f"{line.ljust(COLUMN)}# guess: {guess.source}" if guess.source else line


def _toml(value: object) -> str:
    """A value in one line of TOML."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return tomli_w.dumps({"x": value}).strip().removeprefix("x = ")


def _note(found: Survey, key: str) -> Iterator[str]:
    if key in found.notes:
        yield f"# {found.notes[key]}"
