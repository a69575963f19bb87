"""``report.html`` and ``report.md`` of an import."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jinja2

from gpubench.history.changes import Series
from gpubench.history.holes import Line
from gpubench.history.observed import Observed
from gpubench.report import charts, labels, over_time
from gpubench.report.history import why
from gpubench.report.page import bundle, script_safe
from gpubench.stats.settings import Settings
from gpubench.stats.verdict import Verdict

_FOREST = "forest"


@dataclasses.dataclass(frozen=True)
class ImportedInputs:
    """What the front end has read and computed; ``note`` is ``import.json``, ``cautions`` are lines for the reader."""

    note: Mapping[str, Any]
    verdicts: Sequence[Verdict]
    settings: Settings
    observed: Sequence[Observed]
    series: Sequence[Series]
    lines: Sequence[Line]
    cautions: Sequence[str]
    templates: Mapping[str, str]


def html(inputs: ImportedInputs) -> bytes:
    """The page: one file that asks no network for anything."""
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(dict(inputs.templates)),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    drawn = drawings(inputs)
    specs = {anchor: spec for anchor, _, spec in drawn}
    text = environment.get_template("report/imported.html.j2").render(
        note=inputs.note,
        cautions=inputs.cautions,
        charts=[(anchor, name) for anchor, name, _ in drawn if anchor != _FOREST],
        forest=_FOREST in specs,
        verdicts=verdict_rows(inputs.verdicts),
        changes=change_rows(inputs.series),
        holes=[(name, line) for name, line in zip(_line_names(inputs.lines), inputs.lines, strict=True)],
        refused=reasons(inputs.note["refused"]),
        specs=script_safe(specs),
        bundle=bundle(),
    )
    return text.encode()


def drawings(inputs: ImportedInputs) -> list[tuple[str, str, dict[str, Any]]]:
    """Anchor, name and spec of every chart: figures over dates per workload, and the effects where there are some."""
    drawn = [(f"over-time-{number}", *one) for number, one in enumerate(over_time.charts(inputs.observed))]
    if any(one.effect is not None for one in inputs.verdicts):
        spec = charts.forest(inputs.verdicts, _names(inputs.verdicts), inputs.settings.margin)
        drawn.append((_FOREST, "effects", spec))
    return drawn


def markdown(inputs: ImportedInputs) -> str:
    """Verdicts, changes and cautions, for a pull request."""
    note = inputs.note
    head = [
        f"**Import {note['name']}** ({note['format']}): {note['kept']} of {note['rows_in']} rows",
        "",
        *(f"> {line}\n" for line in inputs.cautions),
        "| workload | versions | effect [95 % interval] | dates | verdict | why |",
        "|---|---|--:|--:|---|---|",
    ]
    rows = ["| " + " | ".join(str(row[key]) for key in _VERDICT) + " |" for row in verdict_rows(inputs.verdicts)]
    changed = ["", "| series | first date of it | effect | p | why |", "|---|---|--:|--:|---|"]
    changes = ["| " + " | ".join(str(word) for word in row) + " |" for row in change_rows(inputs.series)]
    return "\n".join([*head, *rows, *changed, *changes]) + "\n"


_VERDICT = ("name", "pair", "effect", "blocks", "word", "reason")


def verdict_rows(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """A row per comparison."""
    return [
        {
            "name": name,
            "pair": labels.pair(one),
            "effect": f"{labels.effect(one)} {labels.interval(one)}".rstrip(),
            "blocks": one.blocks,
            "verdict": one.verdict,
            "word": f"{labels.MARKS.get(one.verdict, '')} {one.verdict}",
            "reason": "; ".join([one.reason, *one.flags]),
        }
        for one, name in zip(verdicts, _names(verdicts), strict=True)
    ]


def change_rows(series: Sequence[Series]) -> list[tuple[str, str, str, str, str]]:
    """A row per change point, by date."""
    names = labels.cell_names([dict(one.key) for one in series])
    found = [
        (
            f"{name}, {one.variant}",
            str(change.at),
            labels.percent(change.effect),
            f"{change.p:.2g}",
            why(change),
        )
        for one, name in zip(series, names, strict=True)
        for change in one.changes
    ]
    return sorted(found, key=lambda row: (row[1], row[0]))


def reasons(refused: Sequence[Mapping[str, Any]]) -> list[tuple[str, int, str]]:
    """Each reason once, how often, and where first."""
    places: dict[str, list[str]] = {}
    for one in refused:
        places.setdefault(str(one["reason"]), []).append(f"{one['file']}:{one['line']}")
    return [(reason, len(found), found[0]) for reason, found in places.items()]


def _names(verdicts: Sequence[Verdict]) -> list[str]:
    return labels.cell_names([one.key for one in verdicts])


def _line_names(lines: Sequence[Line]) -> list[str]:
    return labels.cell_names([dict(one.key) for one in lines])
