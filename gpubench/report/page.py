"""``report.html``: one file that holds everything it needs, and asks no network for anything."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

import jinja2
import markupsafe
import vl_convert

from gpubench.report import charts, headline, labels, provenance, rows
from gpubench.report.inputs import ReportInputs
from gpubench.store.accounting import run_warnings


def html(inputs: ReportInputs) -> bytes:
    """The page, to be written beside ``runs/``: its links to raw files are relative."""
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(dict(inputs.templates)),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report/page.html.j2").render(_context(inputs)).encode()


def _context(inputs: ReportInputs) -> dict[str, Any]:
    names = labels.cell_names([one.key for one in inputs.verdicts])
    groups = rows.groups(inputs, names)
    specs = {group.anchor: group.chart for group in groups if group.chart}
    if any(one.effect is not None for one in inputs.verdicts):
        specs["forest"] = charts.forest(inputs.verdicts, names, inputs.settings.margin)
    return {
        "plan": inputs.plan,
        "variants": [one.label for one in inputs.plan.variants],
        "answer": headline.answer(inputs),
        "findings": headline.findings(inputs),
        "certainty": headline.certainty(inputs),
        "calibration": inputs.calibration,
        "same_twice": headline.same_twice(inputs.plan),
        "facts": headline.facts(inputs),
        "margin": f"{100 * inputs.settings.margin:g}",
        "verdicts": rows.verdict_rows(inputs, names),
        "verdict_marks": labels.MARKS,
        "groups": groups,
        "means_only": rows.means_only(inputs),
        "jobs": rows.matrix(inputs),
        "marks": labels.RUN_MARKS,
        "provenance": provenance.by_variant(inputs),
        "differing": provenance.differing(inputs),
        "hosts": provenance.hosts(inputs),
        "noise": _noise(inputs),
        "warnings": [
            *provenance.unplanned(inputs.plan, inputs.changes),
            *inputs.plan.notes,
            *inputs.warnings,
            *run_warnings(inputs.outcomes),
        ],
        "specs": _script_safe(specs),
        "bundle": _bundle(),
        "generated": headline.moment(inputs.generated_at),
    }


def _noise(inputs: ReportInputs) -> list[dict[str, Any]]:
    return [
        {"run": one.directory.name, "block": one.block.block, "variant": one.run.variant}
        | provenance.run_noise(inputs.provenance.get(one.directory.name, {}))
        for one in inputs.outcomes
        if one.directory and one.record
    ]


def _script_safe(specs: Mapping[str, Any]) -> markupsafe.Markup:
    # Inside <script> only "<" could end the element early; JSON lets it be written as an escape.
    text = json.dumps(specs, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return markupsafe.Markup(text.replace("<", "\\u003c"))  # noqa: S704 - escaped in this very line


@functools.cache
def _bundle() -> markupsafe.Markup:
    code = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")
    return markupsafe.Markup(code)  # noqa: S704 - the code of our own dependency, not data
