"""Find and read site profiles, suites and known issues."""

import dataclasses
import os
import re
from pathlib import Path
from typing import Any

from gpubench import resources
from gpubench.errors import GpubenchError, UsageError, joined
from gpubench.model.base import TomlSource, check_name, key_lines, nearest, parse_toml, quoted, takes_text
from gpubench.model.known_issue import KnownIssue, load_known_issues
from gpubench.model.site import Site
from gpubench.model.suite import Suite
from gpubench.model.variant import Variant, parse_variant

INHERITS = "inherits"
OF_ITS_OWN = ("name", "description", INHERITS)
"""Keys that no profile inherits."""
SET = "--set"
PARTITION = ("batch.queue", "batch.partition")
"""One key under gpubench's name and under Slurm's."""
OF_YOUR_OWN = "a file of your own is named by its path, DIR/NAME.toml"
_NO_UTF_8 = "its byte {} is no UTF-8"
_typed: dict[str, tuple[str, list[str]]] = {}
"""By name: what was typed in this process for each site, and the settings laid over it."""
_VARIABLE = re.compile(r"\$(\w+|\{\w+\})")


@dataclasses.dataclass(frozen=True)
class Profile:
    """A profile with all inherited values and settings, not yet checked.

    ``origins`` say for every dotted key which file (or ``--set``) its value comes from; ``source`` is the profile's own
    file, and ``files`` are all that it was read from, by what messages call them.
    """

    plain: dict[str, Any]
    origins: dict[str, str]
    source: str
    files: dict[str, TomlSource]

    def site(self) -> Site:
        """The checked profile; raises UsageError, with everything that is wrong."""
        plain, name = self.plain, self.plain.get("name")
        faults: list[GpubenchError] = []
        try:
            if isinstance(name, str):
                check_name(name)  # stricter than for plans of long ago
        except ValueError as error:
            faults.append(UsageError(f"{self.at('name')}: 'name' = {quoted(name)}: {error}"))
            plain = {**plain, "name": "unnamed"}
        try:
            site = Site.of(plain, self.source, self.at)
        except UsageError as fault:
            faults.append(fault)
        if faults:
            raise joined(faults)
        return site

    def at(self, path: str) -> str:
        """Where the value of a dotted key was written; for a missing key, where its table begins."""
        origin = next((file for key, file in self.origins.items() if f"{path}.".startswith(f"{key}.")), "")
        inside = next((file for key, file in self.origins.items() if key.startswith(f"{path}.")), "")
        file = origin or inside or self.source.removesuffix(f" with {SET}")
        return self.files[file].at(path) if file in self.files else file


def load_site(name: str, settings: list[str] | None = None) -> Site:
    """A profile by name or path, with ``KEY=VALUE`` settings laid over it; raises UsageError."""
    site = read_profile(name, settings).site()
    _typed[site.name] = name, settings or []
    return site


def typed_site(site: str) -> tuple[str, list[str]]:
    """The argument of ``--site`` in a command that a message names, and settings: as the user typed them.

    A plan holds only the name of its site; if no shipped profile has this name, it comes from a user's file.
    """
    return _typed.get(site) or (site if site in site_names() else f"{site}.toml", [])


def to_type(site: str) -> list[str]:
    """The options of such a command: ``--site NAME --set KEY=VALUE``."""
    name, settings = typed_site(site)
    return ["--site", name, *(word for setting in settings for word in (SET, setting))]


def read_profile(name: str, settings: list[str] | None = None) -> Profile:
    """A profile by name or path with what it inherits, and ``KEY=VALUE`` settings laid over it; raises UsageError."""
    profile = _inherited(name, Path(), ())
    plain, origins = profile.plain, profile.origins
    given = {setting.partition("=")[0] for setting in settings or []}
    if given.issuperset(PARTITION):
        raise UsageError(f"{SET}: {' and '.join(PARTITION)} are the same key", then="leave one of them out")
    for setting in settings or []:
        dotted = _lay_over(plain, setting)
        for key in [key for key in origins if key == dotted or key.startswith(f"{dotted}.")]:
            del origins[key]
        origins[dotted] = SET
    return dataclasses.replace(profile, source=profile.source + (f" with {SET}" if settings else ""))


def default_variant(site: Site, ucx: str | None, *, then: str = "--ucx VERSION") -> Variant:
    """The one variant that is meant: as typed, else the profile's first; raises UsageError where there is none."""
    if ucx is None and not site.defaults.variants:
        raise UsageError(f"site {site.name} has no default variant", then=then)
    return parse_variant(ucx or site.defaults.variants[0])


def suite_names() -> list[str]:
    return sorted(path.stem for path in (resources.root() / "suites").glob("*.toml"))


def site_names() -> list[str]:
    return sorted(path.stem for path in (resources.root() / "sites").glob("*.toml"))


def load_suite(name: str) -> tuple[Suite, TomlSource]:
    """A suite by name or path, and how messages should call it and its lines; raises UsageError."""
    text, source = _find("suites", name)
    plain, file = parse_toml(text, source), TomlSource(source, key_lines(text))
    return Suite.of(plain, source, file.at), file


def known_issues(site: Site) -> list[KnownIssue]:
    """The rules that come with gpubench, and those of the file that the profile names: the same name is replaced."""
    path = resources.root() / "issues" / "known.toml"
    rules = load_known_issues(path.read_text(encoding="utf-8"), "issues/known.toml")
    if site.known_issues:
        own = expanded(site.known_issues, "known_issues", site)
        try:
            text = own.read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(f"known_issues of site {site.name}: can't read {own}: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise UsageError(f"{own} is not TOML: {_NO_UTF_8.format(error.start)}") from None
        rules += load_known_issues(text, str(own))
    return list({rule.name: rule for rule in rules}.values())


def expanded(text: str, key: str, site: Site) -> Path:
    """A path of the profile with ``~`` and variables put in; raises UsageError where one isn't set here."""
    put_in = os.path.expandvars(text)
    unset = _VARIABLE.search(put_in)
    if unset:
        raise UsageError(
            f"{key} of site {site.name} is {text}, and {unset[0]} isn't set here",
            then=f"set it, or give the path: --set {key}=...",
        )
    return Path(put_in).expanduser()


def outputs_of(site: Site, typed: Path | None) -> Path:
    """Where campaigns, clusters and small jobs live: as ``typed``, else as the profile says; raises as ``expanded``."""
    return typed or expanded(site.paths.outputs, "paths.outputs", site)


def _inherited(name: str, folder: Path, above: tuple[str, ...]) -> Profile:
    """The profile laid over what it inherits; a path is relative to the folder of the file that names it."""
    text, source = _find("sites", str(folder / name) if name.endswith(".toml") else name)
    if source in above:
        raise UsageError(f"{' inherits '.join([*above, source])}: a circle", then="let one of them inherit nothing")
    own, lines = parse_toml(text, source), key_lines(text)
    file = TomlSource(source, lines)
    _rename_partition(own, file)
    if PARTITION[1] in lines:
        lines[PARTITION[0]] = lines[PARTITION[1]]
    files = {source: file}
    parent = own.pop(INHERITS, None)
    if parent is None:
        return Profile(own, dict.fromkeys(_leaves(own), source), source, files)
    if not isinstance(parent, str):
        raise UsageError(f"{file.at(INHERITS)}: '{INHERITS}' = {parent!r}: write the name or path of one profile")
    base = _inherited(parent, Path(source).parent if name.endswith(".toml") else Path(), (*above, source))
    kept = {key: value for key, value in base.plain.items() if key not in OF_ITS_OWN}
    plain, origins = _merged(kept, own), dict.fromkeys(_leaves(own), source)
    inherited = {key: base.origins.get(key, base.source) for key in _leaves(plain) if key not in origins}
    return Profile(plain, {**inherited, **origins}, source, base.files | files)


def _rename_partition(own: dict[str, Any], file: TomlSource) -> None:
    """Slurm's word for a queue, in one file; raises UsageError if the file has both words."""
    batch = own.get("batch")
    if isinstance(batch, dict) and "partition" in batch:
        if "queue" in batch:
            what = f"'{PARTITION[1]}' and '{PARTITION[0]}' are the same key"
            raise UsageError(f"{file.at(PARTITION[1])}: {what}", then="leave one of them out")
        batch["queue"] = batch.pop("partition")


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Tables key by key; everything else, lists too, is replaced."""
    merged = dict(below)
    for key, value in above.items():
        here = merged.get(key)
        merged[key] = _merged(here, value) if isinstance(here, dict) and isinstance(value, dict) else value
    return merged


def _leaves(plain: dict[str, Any], before: str = "") -> list[str]:
    leaves: list[str] = []
    for key, value in plain.items():
        leaves += _leaves(value, f"{before}{key}.") if isinstance(value, dict) else [f"{before}{key}"]
    return leaves


def _find(folder: str, name: str) -> tuple[str, str]:
    base = resources.root() / folder
    path = Path(name) if name.endswith(".toml") else base / f"{name}.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        kind = folder.removesuffix("s")
        if name.endswith(".toml"):
            raise UsageError(f"can't read {kind} {path}: {error.strerror}", then="give the path of a file") from None
        names = [entry.stem for entry in base.glob("*.toml")]
        here = Path(f"{name}.toml")
        mine = f"the file here is named by its path, {here}" if here.is_file() else OF_YOUR_OWN
        raise UsageError(f"no {kind} '{name}'{nearest(name, names)}", then=mine) from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not TOML: {_NO_UTF_8.format(error.start)}", then="save it as UTF-8") from None
    return text, str(path) if name.endswith(".toml") else f"{folder}/{name}.toml"


def _lay_over(plain: dict[str, Any], setting: str) -> str:
    """Put one ``KEY=VALUE`` in; the dotted key."""
    dotted, equals, value = setting.partition("=")
    if not equals:
        raise UsageError(f"--set {setting}: no value", then="write it like --set limits.start=2m")
    if dotted == PARTITION[1]:
        dotted = PARTITION[0]
    *parents, last = dotted.split(".")
    here = plain
    for part in parents:
        here = here.setdefault(part, {})
        if not isinstance(here, dict):
            raise UsageError(f"--set {setting}: '{part}' holds no further keys")
    read = toml_or_text(value)
    # A variable of the environment is text whatever it looks like: 1 and true, too. Quotes are TOML's all the same.
    here[last] = read if isinstance(read, str) or not takes_text(Site, dotted.split(".")) else value
    return dotted


def toml_or_text(text: str) -> Any:
    """A TOML value if the text is TOML (numbers, true, lists, quoted text), else the text itself."""
    try:
        return parse_toml(f"value = {text}", "--set")["value"]
    except UsageError:
        return text
