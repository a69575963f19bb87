"""Write the pages that are made from the code: commands, columns, keys of site and suite files, their JSON Schemas.

``make docs`` runs it; ``tests/docs/test_generated_pages.py`` fails where a page is out of date. A key's description is
the docstring below it in its class.
"""

from __future__ import annotations

import ast
import copy
import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import typer.main
from typer.core import TyperArgument, TyperCommand, TyperOption

from gpubench.cli.application import application
from gpubench.model import site, suite
from gpubench.model.base import Settings
from gpubench.node.spec.sample_columns import COLUMNS
from gpubench.plan.adapter_combinations import VALID

FOLDER = Path(__file__).resolve().parent
MADE = "<!-- Made by docs/generate.py (make docs) from {}. Change that, not this page. -->\n\n"
PLANNING = ("gpubench bench", "gpubench plan", "gpubench submit")
"""Commands that plan a campaign; what all of them take is shown once."""
_UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def main() -> None:
    """Write every page."""
    for name, text in pages().items():
        path = FOLDER / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """The text of every page by its path below ``docs/``."""
    site_schema, suite_schema = schema(site.Site, site), schema(suite.Suite, suite)
    return {
        "commands.md": "".join(_commands()),
        "site-keys.md": "".join(_keys_page("site", site_schema, "gpubench/model/site.py", _SITE)),
        "suite-keys.md": "".join(_keys_page("suite", suite_schema, "gpubench/model/suite.py", _SUITE)),
        "columns.md": "".join(_columns_page()),
        "schemas/site.json": json.dumps(site_schema, indent=1) + "\n",
        "schemas/suite.json": json.dumps(suite_schema, indent=1) + "\n",
    }


_SITE = (
    "Every key of a site file (`sites/NAME.toml`), with its default. [A site file, line by line](site-file.md) "
    "explains one whole file. [`gpubench sites check`](commands.md#gpubench-sites-check) checks a file. An editor that "
    "knows JSON Schema can complete and check keys with [schemas/site.json](schemas/site.json): write "
    "`#:schema ../docs/schemas/site.json` (the path from your file) on the file's first line.\n\n"
)
_SUITE = (
    "Every key of a suite file (`suites/NAME.toml`), with its default. [Suites](suites.md) explains one. The "
    "[workloads](workloads.md) have parameters of their own; `gpubench suites list NAME` lists those of one. "
    "JSON Schema: [schemas/suite.json](schemas/suite.json).\n\n"
)


# --- columns ------------------------------------------------------------------------------------------------------


def _columns_page() -> Iterator[str]:
    yield "# Columns of the table of samples\n\n"
    yield MADE.format("gpubench/node/spec/sample_columns.py")
    yield (
        "The table of samples has one row for each repetition. `results.parquet` and an exported table have the "
        "columns of a run, a workload and a sample; an import has those that its source recorded, and those of an "
        "import. An exported table also has a row without a time for each workload that failed before its first "
        "sample. A line of `samples.jsonl` has the columns of a sample (`started_at` in ISO 8601 with microseconds and "
        "offset), and `workload`, `backend` and `params_id`.\n\n"
        "A table of your own for [`gpubench compare`](ci.md#judge-your-own-timings) needs `variant`, `block` and a "
        "time (`wall_s`, `wall_ms` or `wall_us`). The other columns marked *needed* have a default: one workload, one "
        "node, a run for each row. Those marked *taken* are used if they are there, and so is `status` (`ok`, "
        "`failed`, `skipped`, `lost`). Other columns can tell cells apart (`--by`), if they aren't called as a figure "
        "of a verdict.\n\n"
    )
    yield "| column | type | fact of | meaning | unit | `compare` |\n|---|---|---|---|---|---|\n"
    for column in COLUMNS:
        meaning = column.meaning if column.required else f"{column.meaning}; absent where it can't be read"
        words = f": {', '.join(f'`{word}`' for word in column.choices)}" if column.choices else ""
        cells = (column.of, f"{meaning}{words}", column.unit, column.compare)
        yield f"| `{column.name}` | {column.type} | {' | '.join(cells)} |\n"


# --- keys ---------------------------------------------------------------------------------------------------------


def schema(model: type[Settings], module: ModuleType) -> dict[str, Any]:
    """The JSON Schema of what a person writes, with descriptions from docstrings and defaults as they are typed."""
    found: dict[str, Any] = copy.deepcopy(model.model_json_schema())
    told = descriptions(module)
    for name, table in [(model.__name__, found), *found.get("$defs", {}).items()]:
        table["description"] = _plain(str(table.get("description", ""))).partition("\n\n")[0].replace("``", "`")
        for key, one in table.get("properties", {}).items():
            one.pop("title", None)
            if text := told.get((name, key)):
                one["description"] = text.replace("``", "`")
            if "default" in one:
                one["default"] = _default(one)
                if one["default"] is None:
                    del one["default"]
    if model is site.Site:
        found["properties"] = {
            "inherits": {"type": "string", "description": "Name or path of the profile that this one changes."},
            **found["properties"],
        }
        # What a file inherits need not stand in it.
        found["anyOf"] = [{"required": ["inherits"]}, {"required": found.pop("required")}]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def descriptions(module: ModuleType) -> dict[tuple[str, str], str]:
    """By class and key: the docstring below the key."""
    found = {}
    for one in ast.parse(inspect.getsource(module)).body:
        for key, below in zip(one.body, one.body[1:], strict=False) if isinstance(one, ast.ClassDef) else ():
            if (
                isinstance(key, ast.AnnAssign)
                and isinstance(key.target, ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
            ):
                found[cast("ast.ClassDef", one).name, key.target.id] = _plain(str(below.value.value))
    return found


def _plain(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _default(one: Mapping[str, Any]) -> Any:
    value, examples = one["default"], one.get("examples", [])
    if isinstance(value, int | float) and "90s" in examples:
        return next(f"{value / size:g}{unit}" for size, unit in _UNITS if value % size == 0)
    if isinstance(value, int | float) and "3%" in examples:
        return f"{100 * value:g}%"
    return value


def _keys_page(kind: str, found: Mapping[str, Any], source: str, head: str) -> Iterator[str]:
    yield f"# Keys of a {kind} file\n\n" + MADE.format(source) + head
    yield "## Top level\n\n" + "".join(_key_rows(found, found))
    if kind == "site":
        yield from _triples()
    tables = {key: _reference(one) for key, one in found["properties"].items()}
    for key, name in [(key, name) for key, name in tables.items() if name]:
        yield from _table(f"[[{key}]]" if kind == "suite" else f"[{key}]", found["$defs"][name], found)
        for inner, below in found["$defs"][name]["properties"].items():
            if deeper := _reference(below):
                yield from _table(f"[[{key}.{inner}]]", found["$defs"][deeper], found)


def _triples() -> Iterator[str]:
    yield "\n## Schedulers, launchers and runtimes\n\nThese go together; a plan refuses everything else.\n\n"
    yield "| `scheduler` | `launcher` | `runtime` |\n|---|---|---|\n"
    for scheduler, launcher in sorted({words[:2] for words in VALID}):
        runtimes = sorted(runtime for *words, runtime in VALID if tuple(words) == (scheduler, launcher))
        yield f"| `{scheduler}` | `{launcher}` | {', '.join(f'`{runtime}`' for runtime in runtimes)} |\n"


def _table(head: str, table: Mapping[str, Any], whole: Mapping[str, Any]) -> Iterator[str]:
    yield f"\n## `{head}`\n\n{table['description']}\n\n"
    yield from _key_rows(table, whole)


def _reference(one: Mapping[str, Any]) -> str:
    """The name of the table that a key holds, or a list of it; empty for a plain value."""
    return str(one.get("$ref", one.get("items", {}).get("$ref", ""))).rpartition("/")[2]


def _key_rows(table: Mapping[str, Any], whole: Mapping[str, Any]) -> Iterator[str]:
    needed = [*table.get("required", ()), *(name for each in table.get("anyOf", ()) for name in each["required"])]
    yield "| key | value | default | meaning |\n|---|---|---|---|\n"
    for key, one in table["properties"].items():
        reference = _reference(one)
        if reference:
            text = whole["$defs"][reference]["description"]
            many = one.get("type") == "array"
            yield f"| `{key}` | {'tables' if many else 'table'} | | {_cell(one.get('description', text))} |\n"
            continue
        default = "required" if key in needed and key != "inherits" else _shown(one)
        yield f"| `{key}` | {_kind(one)} | {default} | {_cell(one.get('description', ''))} |\n"


def _shown(one: Mapping[str, Any]) -> str:
    value = one.get("default")
    return "" if value in (None, "", [], {}) else f"`{json.dumps(value)}`"


def _kind(one: Mapping[str, Any]) -> str:
    if "anyOf" in one:
        return _kind(next(each for each in one["anyOf"] if each["type"] != "null"))
    if "enum" in one:
        return ", ".join(f'`"{each}"`' for each in one["enum"])
    if "examples" in one:
        return "text like " + ", ".join(f'`"{each}"`' for each in one["examples"])
    if one["type"] == "array":
        return {"integer": "list of numbers"}.get(one["items"]["type"], "list of texts")
    return {"string": "text", "integer": "whole number", "boolean": "`true` or `false`", "object": "table"}[one["type"]]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# --- commands -----------------------------------------------------------------------------------------------------


def _commands() -> Iterator[str]:
    root = typer.main.get_command(application())
    yield "# Command reference\n\n" + MADE.format("gpubench/cli")
    yield (
        "Every command with its options. `gpubench COMMAND --help` prints the same. `make help` lists the targets of "
        "the Makefile, its variables, and the option that each variable becomes. [Exit codes](exit-codes.md) are the "
        "same for all commands.\n\n"
    )
    all_of_them = list(_leaves(root, "gpubench"))
    yield "| command | |\n|---|---|\n"
    for name, command in all_of_them:
        summary = _cell(_help(command).partition("\n\n")[0])
        yield f"| [`{name}`](#{name.replace(' ', '-')}) | {summary} |\n"
    by_name = dict(all_of_them)
    common = set.intersection(*({tuple(one.opts) for one in by_name[name].params} for name in PLANNING))
    planning = [one for one in by_name[PLANNING[0]].params if tuple(one.opts) in common]
    yield "\n## Options that plan a campaign\n\n`bench`, `plan` and `submit` take all of them.\n\n"
    yield from _rows(planning)
    for name, command in all_of_them:
        own = [one for one in command.params if name not in PLANNING or tuple(one.opts) not in common]
        yield f"\n## {name}\n\n{_text(_help(command))}\n\n```text\n{_usage(name, own)}\n```\n"
        if command.epilog:
            yield f"\n{command.epilog.partition(': ')[0]}:\n\n```sh\n{command.epilog.partition(': ')[2]}\n```\n"
        if name in PLANNING:
            yield "\nIt also takes the [options that plan a campaign](#options-that-plan-a-campaign).\n"
        if own:
            yield "\n"
            yield from _rows(own)


def _leaves(command: Any, path: str) -> Iterator[tuple[str, TyperCommand]]:
    for name, inner in command.commands.items():
        if hasattr(inner, "commands"):
            yield from _leaves(inner, f"{path} {name}")
        else:
            inner.name_adapters()
            yield f"{path} {name}", inner


def _help(command: TyperCommand) -> str:
    return inspect.cleandoc(command.help or "")


def _text(text: str) -> str:
    """A docstring as Markdown: ``two`` backquotes become one pair."""
    return re.sub(r"``(.+?)``", r"`\1`", text)


def _usage(name: str, own: Sequence[Any]) -> str:
    words = [name]
    if any(isinstance(one, TyperOption) for one in own):
        words.append("[OPTIONS]")
    return " ".join([*words, *(_argument(one) for one in own if isinstance(one, TyperArgument))])


def _argument(one: TyperArgument) -> str:
    name = (one.metavar or str(one.name).upper()) + ("..." if one.nargs == -1 else "")
    return name if one.required else f"[{name}]"


def _rows(params: Sequence[Any]) -> Iterator[str]:
    yield "| option | value | default | meaning |\n|---|---|---|---|\n"
    for one in params:
        if isinstance(one, TyperArgument):
            yield f"| `{_argument(one)}` | | | {_cell(one.help or '')} |\n"
            continue
        names = ", ".join(f"`{name}`" for name in (*one.opts, *one.secondary_opts))
        value = "" if one.is_flag else _cell(f"`{one.metavar}`") if one.metavar else "word"
        default = "required" if one.required else "" if one.default in (None, False, "") else f"`{one.default}`"
        yield f"| {names} | {value} | {default} | {_cell(one.help or '')} |\n"


if __name__ == "__main__":
    main()
