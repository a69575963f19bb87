"""``report.html``: one file that holds everything it needs, and asks no network for anything."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import jinja2
import markupsafe
import platformdirs
import vl_convert

from gpubench.errors import MissingToolError
from gpubench.files import write_atomically
from gpubench.model.text import all_visible, visible
from gpubench.report import charts, condense, headline, labels, link_rows, provenance, rows, scaling_rows
from gpubench.report.inputs import ReportInputs
from gpubench.store.accounting import run_warnings


def html(inputs: ReportInputs) -> bytes:
    """The page, to be written beside ``runs/``: its links to raw files are relative."""
    return render("report/page.html.j2", inputs.templates, _context(inputs))


def render(name: str, templates: Mapping[str, str], context: Mapping[str, Any]) -> bytes:
    """A page that extends ``report/base.html.j2``; ``specs`` of the context are its charts by anchor."""
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(dict(templates)),
        autoescape=True,
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    held = {"specs": script_safe(context["specs"]), "bundle": bundle()}
    return environment.get_template(name).render({**context, **held}).encode()


@dataclasses.dataclass(frozen=True)
class Parts:
    """The sections that have charts, each as rows for its tables and specs for its pictures."""

    names: list[str]
    forest: dict[str, Any] | None
    groups: list[rows.RowGroup]
    scaling: list[scaling_rows.Scaling]
    overhead: scaling_rows.Overhead | None
    links: list[link_rows.Links]

    def charts(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Anchor, a name for people, and the spec, in the order of the page."""
        if self.forest:
            yield "forest", "effects", self.forest
        for group in self.groups:
            if group.chart:
                yield group.anchor, f"samples {group.name}", group.chart
            if group.histogram:
                yield f"{group.anchor}-modes", f"histogram {group.name}", group.histogram
        for scaled in self.scaling:
            if scaled.chart:
                yield scaled.anchor, f"efficiency {scaled.name}", scaled.chart
        if self.overhead:
            yield "overhead", "scheduler", self.overhead.chart
        for table in self.links:
            if table.chart:
                yield table.anchor, f"links {table.name}", table.chart


def parts(inputs: ReportInputs) -> Parts:
    """What the page, its exports and its tables show alike."""
    names = labels.cell_names([one.key for one in inputs.verdicts])
    drawn = any(one.effect is not None for one in inputs.verdicts)
    groups = rows.groups(inputs, names)
    anchors = [group.anchor for group in groups]
    return Parts(
        names=names,
        forest=charts.forest(inputs.verdicts, names, inputs.settings.margin) if drawn else None,
        groups=groups,
        scaling=scaling_rows.scaling(inputs, anchors),
        overhead=scaling_rows.overhead(inputs, anchors),
        links=link_rows.links(inputs),
    )


def _context(inputs: ReportInputs) -> dict[str, Any]:
    shown = parts(inputs)
    return {
        "plan": inputs.plan,
        "variants": [one.label for one in inputs.plan.variants],
        "answer": headline.answer(inputs),
        "findings": headline.findings(inputs),
        "certainty": headline.certainty(inputs),
        "calibration": inputs.calibration,
        "same_twice": headline.same_twice(inputs.plan),
        "facts": headline.facts(inputs),
        "baselines": labels.baselines(inputs.verdicts) or [inputs.plan.baseline],
        "margin": f"{100 * inputs.settings.margin:g}",
        "verdicts": rows.verdict_rows(inputs, shown.names),
        "verdict_marks": labels.MARKS,
        "groups": shown.groups,
        "means_only": rows.means_only(inputs),
        "condensed": condense.sentence(inputs),
        "scaling": shown.scaling,
        "overhead": shown.overhead,
        "links": shown.links,
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
        "specs": {anchor: spec for anchor, _, spec in shown.charts()},
        "generated": headline.moment(inputs.generated_at),
    }


def _noise(inputs: ReportInputs) -> list[dict[str, Any]]:
    recorded = [(one, one.directory.name) for one in inputs.outcomes if one.directory and one.record]
    return [
        {"run": name, "block": one.block.block, "variant": one.run.variant}
        | provenance.run_noise(inputs.provenance.get(name, {}))
        for one, name in condense.thinned(recorded)
    ]


def script_safe(specs: Mapping[str, Any]) -> markupsafe.Markup:
    """The specs as JSON for inside of a script element."""
    # Inside <script> only "<" could end the element early; JSON lets it be written as an escape.
    text = json.dumps(all_visible(specs), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return markupsafe.Markup(text.replace("<", "\\u003c"))  # noqa: S704 - escaped in this very line


def _shown(value: Any) -> Any:
    """What stands between ``{{`` and ``}}``; markup is ours."""
    return visible(value) if isinstance(value, str) and not isinstance(value, markupsafe.Markup) else value


@functools.cache
def bundle() -> markupsafe.Markup:
    """The library that draws, once for a page. Putting it together takes seconds, so the user's cache keeps it."""
    path = Path(platformdirs.user_cache_dir("gpubench")) / f"vega-{metadata.version('vl-convert-python')}.js"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        head, _, code = path.read_bytes().decode().partition("\n")
        if head == _head(code):
            return markupsafe.Markup(code)  # noqa: S704 - the code of our own dependency, not data
    code = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")
    with contextlib.suppress(MissingToolError):  # without a cache it takes seconds each time, and no more
        write_atomically(path, f"{_head(code)}\n{code}".encode())
    return markupsafe.Markup(code)  # noqa: S704 - see above


def _head(code: str) -> str:
    return f"// SHA-256 of what follows: {hashlib.sha256(code.encode()).hexdigest()}"
