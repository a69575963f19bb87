"""Find and read site profiles and suites."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpubench import resources
from gpubench.errors import UsageError
from gpubench.model.base import nearest, parse_toml
from gpubench.model.site import Site
from gpubench.model.suite import Suite


def load_site(name: str, settings: list[str] | None = None) -> Site:
    """A profile by name or path, with ``KEY=VALUE`` settings laid over it; raises UsageError."""
    text, source = _find("sites", name)
    plain = parse_toml(text, source)
    for setting in settings or []:
        _lay_over(plain, setting)
    return Site.of(plain, source + (" with --set" if settings else ""))


def site_names() -> list[str]:
    """Every shipped profile."""
    return sorted(path.stem for path in (resources.root() / "sites").glob("*.toml"))


def load_suite(name: str) -> tuple[Suite, str]:
    """A suite by name or path, and how messages should call it; raises UsageError."""
    text, source = _find("suites", name)
    return Suite.load(text, source), source


def _find(folder: str, name: str) -> tuple[str, str]:
    base = resources.root() / folder
    path = Path(name) if name.endswith(".toml") else base / f"{name}.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        known = [entry.stem for entry in base.glob("*.toml")]
        raise UsageError(f"no {folder.removesuffix('s')} '{name}'{nearest(name, known)}") from None
    return text, str(path) if name.endswith(".toml") else f"{folder}/{name}.toml"


def _lay_over(plain: dict[str, Any], setting: str) -> None:
    dotted, equals, value = setting.partition("=")
    if not equals:
        raise UsageError(f"--set {setting}: no value", then="write it like --set limits.start=2m")
    *parents, last = dotted.split(".")
    here = plain
    for part in parents:
        here = here.setdefault(part, {})
        if not isinstance(here, dict):
            raise UsageError(f"--set {setting}: '{part}' holds no further keys")
    here[last] = _value(value)


def _value(text: str) -> Any:
    """TOML where it is TOML (numbers, true, lists, quoted text), else the words as they stand."""
    try:
        return parse_toml(f"value = {text}", "--set")["value"]
    except UsageError:
        return text
