"""``report.html``: the page of a campaign, its answer first."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from typing import Any

from gpubench.report import charts, condense, headline, labels, link_rows, provenance, rows, scaling_rows
from gpubench.report.frame import render
from gpubench.report.inputs import ReportInputs
from gpubench.report.next_steps import next_steps
from gpubench.report.tiles import tiles
from gpubench.store.accounting import run_warnings


def html(inputs: ReportInputs) -> bytes:
    """The page, to be written beside ``runs/``: its links to raw files are relative."""
    return render("report/page.html.j2", inputs.templates, _context(inputs))


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
    drawn, left_out = tiles(inputs, shown.names, [rows.anchor(one) for one in inputs.verdicts])
    counts = Counter(one.status for one in inputs.outcomes)
    differing = provenance.differing(inputs)
    found = {one.verdict for one in inputs.verdicts}
    return {
        "plan": inputs.plan,
        "variants": [one.label for one in inputs.plan.variants],
        "about": headline.about(inputs),
        "answer": headline.answer(inputs),
        "tiles": drawn,
        "tiles_left_out": left_out,
        "steps": next_steps(inputs),
        "certainty": headline.certainty(inputs),
        "calibration": inputs.calibration,
        "same_twice": headline.same_twice(inputs.plan),
        "facts": headline.facts(inputs),
        "baselines": labels.baselines(inputs.verdicts) or [inputs.plan.baseline],
        "margin": f"{100 * inputs.settings.margin:g}",
        "verdicts": rows.verdict_rows(inputs, shown.names),
        "reasons": rows.reasons(inputs, shown.names),
        "verdict_marks": {word: mark for word, mark in labels.MARKS.items() if word in found},
        "drawn_effects": shown.forest is not None,
        "groups": shown.groups,
        "means_only": rows.means_only(inputs),
        "condensed": condense.sentence(inputs),
        "scaling": shown.scaling,
        "overhead": shown.overhead,
        "links": shown.links,
        "jobs": rows.matrix(inputs),
        "marks": labels.RUN_MARKS,
        "run_counts": ", ".join(f"{counts[word]} {word}" for word in labels.RUN_MARKS if word in counts),
        "all_ok": set(counts) <= {"ok"},
        "provenance": provenance.by_variant(inputs),
        "differing": differing,
        "hosts": provenance.hosts(inputs),
        "noise": provenance.runs(inputs),
        "warnings": [
            *provenance.unplanned(inputs.plan, inputs.changes),
            *inputs.plan.notes,
            *inputs.warnings,
            *run_warnings(inputs.outcomes),
        ],
        "specs": {anchor: spec for anchor, _, spec in sorted(shown.charts(), key=_by_weight)},
        "generated": headline.moment(inputs.generated_at),
    }


def _by_weight(chart: tuple[str, str, dict[str, Any]]) -> bool:
    """Charts of samples come last: where not all are drawn beforehand, the others are."""
    return chart[1].startswith(("samples ", "histogram "))
