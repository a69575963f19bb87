"""Which environment variables the libraries inside images read: the table ``docker/variables.toml``."""

from __future__ import annotations

import difflib
import functools
import tomllib
from collections.abc import Iterable

import pydantic

from gpubench.errors import UsageError
from gpubench.model.base import Settings
from gpubench.model.image import Variant
from gpubench.model.site import Site
from gpubench.resources import docker_file

_TABLE = "variables.toml"
_ALLOW = "pass --allow-unknown-env"


class _Library(Settings):
    """What reads the variables of one prefix: ``names`` without it, and all below the prefixes ``open``."""

    library: str
    names: list[str]
    open: list[str] = pydantic.Field(default_factory=list)

    def reads(self, name: str) -> bool:
        # A whole section of Dask's configuration may be set at once: DASK_DISTRIBUTED__COMM="{'zstd': {'level': 3}}".
        section = f"{name}__"
        known = [*self.names, *self.open]
        return name in known or name.startswith(tuple(self.open)) or any(one.startswith(section) for one in known)


@functools.cache
def _libraries() -> dict[str, _Library]:
    path = docker_file(_TABLE)
    tables = tomllib.loads(path.read_text("utf-8"))
    return {prefix: _Library.model_validate(table) for prefix, table in tables.items()}


def check_variables(site: Site, variants: Iterable[Variant]) -> None:
    """Refuse what is set and read by nothing: it would change nothing, and the plan would say that it does.

    Raises:
        UsageError: a variant's name in lower case, or a name that the library of its prefix isn't known to read.
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


def why_unknown(name: str) -> str:
    """That no library reads the variable, with a near name; empty where one may."""
    prefix, _, rest = name.partition("_")
    known = _libraries().get(prefix)
    if known is None or known.reads(rest):
        return ""
    near = difflib.get_close_matches(rest, known.names, n=1, cutoff=0.6)
    return f"no known {known.library} reads {name}" + (f" (did you mean '{prefix}_{near[0]}'?)" if near else "")
