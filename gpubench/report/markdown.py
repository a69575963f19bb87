"""The same answer in Markdown, for a pull request."""

from __future__ import annotations

import jinja2

from gpubench.report import headline, labels, provenance
from gpubench.report.inputs import ReportInputs
from gpubench.report.sections import cell, inline
from gpubench.store.accounting import RunOutcome

__all__ = ["cell", "inline", "markdown"]


def markdown(inputs: ReportInputs) -> str:
    """Answer, verdict table, and what became of the runs."""
    names = labels.cell_names([one.key for one in inputs.verdicts])
    rows = [
        [
            name,
            labels.pair(one),
            f"{labels.effect(one)} {labels.interval(one)}".rstrip(),
            str(one.blocks),
            f"{labels.MARKS.get(one.verdict, '')} {one.verdict}",
            "; ".join(word for word in (one.reason, labels.more(one), *one.flags) if word),
        ]
        for one, name in zip(inputs.verdicts, names, strict=True)
    ]
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(dict(inputs.templates)),
        autoescape=False,  # noqa: S701 - this is Markdown; cell escapes what would break its tables
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report/summary.md.j2").render(
        answer=inline(" ".join(headline.answer(inputs))),
        same_twice=[inline(text) for text in headline.same_twice(inputs.plan)],
        certainty=headline.certainty(inputs),
        calibration=inline(inputs.calibration),
        unplanned=[inline(line) for line in provenance.unplanned(inputs.plan, inputs.changes)],
        facts=[(name, cell(value)) for name, value in headline.facts(inputs)],
        rows=[[cell(word) for word in row] for row in rows],
        bad=[
            inline(f"block {one.block.block}, {one.run.variant}: {one.status}: {one.reason}") for one in _not_ok(inputs)
        ],
    )


def _not_ok(inputs: ReportInputs) -> list[RunOutcome]:
    return [one for one in inputs.outcomes if one.status != "ok"]
