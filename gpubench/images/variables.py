"""Which environment variables the libraries inside images read: by ``docker/variables.toml``, and as UCX lists them."""

import dataclasses
import difflib
import functools
import re
import subprocess
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

import pydantic

from gpubench.errors import UsageError
from gpubench.model.base import Settings
from gpubench.model.image import Image
from gpubench.model.site import Site
from gpubench.model.variant import Variant
from gpubench.node.spec.slowness import slowness
from gpubench.resources import docker_file

_TABLE = "variables.toml"
_ALLOW = "pass --allow-unknown-env"
_IN_EVERY_UCX = {
    *("LOG_FILE", "LOG_LEVEL", "MEMTYPE_CACHE", "NET_DEVICES", "RNDV_SCHEME", "RNDV_THRESH", "TLS"),
    *("WARN_UNUSED_ENV_VARS", "ZCOPY_THRESH"),
}
"""Who sets only these needn't wait for an answer."""

_ANSWER_S = 20.0
_INVALID = "Invalid value for "
_HEADING = re.compile(r"#\n# (.+) configuration\n#")
_VARIABLE = re.compile(r"^(UCX_[A-Z0-9_]+)=(.*)$", re.MULTILINE)
_SYNTAX = re.compile(r"^# syntax: +(.+)$", re.MULTILINE)
_ALIAS = re.compile(r"^# alias of: +(\S+)$", re.MULTILINE)
_OF_TRANSPORT = re.compile(r"([\w-]+) (transport|memory domain|connection manager)")
_SWITCHES = ("<y|n>", "<yes|no|try>")


class _Library(Settings):
    """What reads the variables of one prefix: ``names`` without it, and all below the prefixes ``open``."""

    library: str
    names: list[str]
    open: list[str] = pydantic.Field(default_factory=list)

    def reads(self, name: str) -> bool:
        # A whole section of Dask's configuration may be set at once: DASK_DISTRIBUTED__COMM="{'zstd': {'level': 3}}".
        section = f"{name}__"
        names = [*self.names, *self.open]
        return (
            name in names
            or name.startswith(tuple(self.open))
            or any(known_name.startswith(section) for known_name in names)
        )


@functools.cache
def _libraries() -> dict[str, _Library]:
    path = docker_file(_TABLE)
    tables = tomllib.loads(path.read_text("utf-8"))
    return {prefix: _Library.model_validate(table) for prefix, table in tables.items()}


def check_variables(site: Site, variants: Iterable[Variant]) -> None:
    """Refuse what is set and read by nothing: it would change nothing, and the plan would say that it does.

    Raises:
        UsageError: a variant's name in lower case, a name that the library of its prefix isn't known to read, or a
            slowness of ours that is no percentage.
    """
    environments = [(f"env of site {site.name}", site.env)]
    for variant in variants:
        lower = next((name for name in variant.env if name != name.upper()), None)
        if lower:
            raise UsageError(
                f"variant '{variant.label}' sets {lower}, and names of environment variables are upper-case",
                then=f"for a version of a package write {lower}=={variant.env[lower]}; else correct it, or {_ALLOW}",
            )
        environments.append((f"variant '{variant.label}'", variant.env))
    for where, env in environments:
        why = next(filter(None, map(why_unknown, env)), None)
        if why:
            raise UsageError(f"{where}: {why}", then=f"correct it, or {_ALLOW}")
        try:
            slowness(env)
        except ValueError as error:
            raise UsageError(f"{where}: {error}", then="write it like 5%") from None


def why_unknown(name: str) -> str:
    """That no library reads the variable, with a near name; empty where one may."""
    prefix, _, rest = name.partition("_")
    library = _libraries().get(prefix)
    if library is None or library.reads(rest):
        return ""
    near = difflib.get_close_matches(rest, library.names, n=1, cutoff=0.6)
    return f"no known {library.library} reads {name}" + (f" (did you mean '{prefix}_{near[0]}'?)" if near else "")


def check_listed(variants: Iterable[Variant], images: Mapping[str, Image | None]) -> None:
    """Refuse a ``UCX_*`` that other releases of UCX read, and the variant's image doesn't; ``images`` by UCX spec.

    Raises:
        UsageError: such a name. Variables of modules pass: what can't be loaded on this machine lists none. So do
            those of a site, which may be for some of its releases; each run names those that were not read.
    """
    for variant in variants:
        image = images.get(variant.ucx)
        names = {name for name in variant.env if _core(name)}
        if image and names and (listed := _listed(image)) and (unread := sorted(names - listed)):
            near = difflib.get_close_matches(unread[0], sorted(listed), n=1, cutoff=0.8)
            raise UsageError(
                f"UCX {image.ucx_version} of variant '{variant.label}' reads no {unread[0]}"
                + (f" (did you mean '{near[0]}'?)" if near else ""),
                then=f"correct it, or {_ALLOW}",
            )


def _core(name: str) -> bool:
    prefix, _, rest = name.partition("_")
    return prefix == "UCX" and rest not in _IN_EVERY_UCX and rest in _libraries()[prefix].names


def _listed(image: Image) -> frozenset[str]:
    """What ``ucx_info`` of the image lists; empty where it can't be asked on this machine."""
    return frozenset(name for name, _ in _VARIABLE.findall(ask_configuration(image, "-ca")))


@dataclasses.dataclass(frozen=True)
class UcxVariable:
    """A variable as ``ucx_info -c -a -f`` lists it.

    Args:
        value: the default, where the environment says nothing.
        syntax: what UCX takes, in its words.
        alias_of: the name that this one is another name of; empty for a name of its own.
        transport: what it is a variable of (``tcp``, ``posix``, ``ib``), empty for one of all.
    """

    value: str
    syntax: str
    alias_of: str
    transport: str

    @property
    def is_switch(self) -> bool:
        return self.syntax in _SWITCHES


def parse_configuration(text: str) -> dict[str, UcxVariable]:
    """The output of ``ucx_info -c -a -f``, by name.

    Source: ``ucs_config_parser_print_opts`` in parser.c of UCX 1.19.0: a heading for each table, and before each
    variable its documentation, its syntax and the variable that it is an alias of.
    """
    variables = {}
    transport = ""
    for paragraph in text.split("\n\n"):
        if heading := _HEADING.fullmatch(paragraph.strip()):
            table = _OF_TRANSPORT.match(heading[1])
            transport = table[1].partition("-")[0].lower() if table else ""
        if variable := _VARIABLE.search(paragraph):
            syntax, alias = _SYNTAX.search(paragraph), _ALIAS.search(paragraph)
            variables[variable[1]] = UcxVariable(
                variable[2], syntax[1] if syntax else "", alias[1] if alias else "", transport
            )
    return variables


def ask_configuration(image: Image, *options: str, env: Mapping[str, str] | None = None) -> str:
    """What ``ucx_info`` of the image prints; empty where it can't be asked on this machine (other kinds than venv)."""
    libraries = image.env.get("LD_LIBRARY_PATH", "").partition(":")[0]
    program = Path(libraries).parent / "bin" / "ucx_info"
    if image.kind != "venv" or not program.is_file():
        return ""
    try:
        done = subprocess.run(
            [program, *options],
            env={**(env or {}), "LD_LIBRARY_PATH": libraries},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def accepts(image: Image, name: str, value: str, default: str) -> bool:
    """Whether the image's UCX takes the value: it doesn't complain, and prints another one than its default."""
    answer = ask_configuration(image, "-c", "-a", "-f", env={name: value})
    variable = parse_configuration(answer).get(name)
    return variable is not None and _INVALID not in answer and (value == default or variable.value != default)
