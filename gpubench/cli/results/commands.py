"""What came out: merge, compare, scaling, links, explain, report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpubench.cli import completion, options
from gpubench.cli.campaign.options import CampaignOptions
from gpubench.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (merge, compare, summary, scaling, links, explain, report):
        app.command()(command)


def merge(campaign: options.MaybeResults = None, outputs: options.Outputs = None) -> None:
    """Join all samples into results.parquet. Also on a copy, and while the campaign runs. Of a pack: beside it."""
    from gpubench.cli.results.judge import judge_campaign, write_results
    from gpubench.cli.results.open_target import chosen_campaign
    from gpubench.cli.say import say

    judged = judge_campaign(chosen_campaign(campaign, outputs, with_results=True))
    write_results(judged)
    say(f"{judged.merged.height} samples in {judged.campaign.results}")


def compare(
    campaign: options.MaybeResults = None,
    other: options.Other = None,
    samples: Annotated[
        Path | None,
        typer.Option(
            help="Judge this CSV, JSONL or Parquet instead: columns workload nodes variant block run rep wall_s, and "
            "optionally warmup order started_at."
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Variant compared against; default: the first planned. With B: the variant of A.",
            autocompletion=completion.variants,
        ),
    ] = None,
    candidate: Annotated[
        str | None,
        typer.Option(
            help="Variant judged; default: every other. With B: the variant of B.", autocompletion=completion.variants
        ),
    ] = None,
    margin: options.Margin = None,
    by: Annotated[str | None, typer.Option(help="With --samples: further columns that identify a cell.")] = None,
    summary: Annotated[
        str | None,
        typer.Option(
            help="With --samples or B: mean, geomean or median; chosen before looking. With B: default as planned."
        ),
    ] = None,
    allow: options.Allow = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON.")] = False,
    outputs: options.Outputs = None,
) -> None:
    """Verdicts: a row per cell. Exit 0 all equivalent or improved, 20 a regression or a broken one, 21 undecided.

    The family for Holm's correction is every comparison that was planned (every cell of the file), whatever is shown.
    With a second campaign or import: B against A, unpaired, cell by cell that both have under one variant.
    """
    from gpubench.cli.results import compare
    from gpubench.cli.results.open_target import is_import

    margin_given = CampaignOptions(margin=margin).chosen_margin()
    if campaign is not None and other is not None:
        from gpubench.cli.results.side_by_side import compare_sides

        if allow or samples or by:
            raise UsageError(
                "two directories are compared as they stand: without --allow, --samples and --by",
                then="leave them out",
            )
        compare_sides(campaign, other, baseline, candidate, margin=margin_given, summary=summary, as_json=as_json)
    if samples is not None:
        if allow:
            raise UsageError("--allow and --samples exclude each other: a table says nothing of its environment")
        compare.compare_samples(
            samples, baseline, candidate, margin=margin_given, summary=summary, by=by, as_json=as_json
        )
    if campaign is not None and campaign.is_file() and campaign.suffix.lower() in compare.READERS:
        raise UsageError(f"{campaign} is a table, no campaign", then=f"gpubench compare --samples {campaign}")
    if campaign is not None and is_import(campaign):
        from gpubench.cli.results.imported import compare_imported

        if allow:
            raise UsageError("--allow: an import says nothing of its environment", then="leave it out")
        compare_imported(campaign, baseline, candidate, margin=margin_given, as_json=as_json)
    compare.compare_campaign(
        campaign, outputs, baseline, candidate, margin=margin_given, allow=allow or (), as_json=as_json
    )


def summary(
    campaign: options.MaybeResults = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="As Markdown, for a pull request.")] = False,
    allow: options.Allow = None,
    outputs: options.Outputs = None,
) -> None:
    """What came out, in few lines."""
    from gpubench.cli.campaign.display import show_notes, show_verdicts
    from gpubench.cli.results.judge import judge_campaign, report_inputs
    from gpubench.cli.results.open_target import chosen_campaign, is_import
    from gpubench.cli.say import say_text
    from gpubench.stats.question import Question

    if campaign is not None and is_import(campaign):
        from gpubench.cli.results.imported import summarise_imported

        if allow:
            raise UsageError("--allow: an import says nothing of its environment", then="leave it out")
        summarise_imported(campaign, as_markdown=markdown)
        return
    judged = judge_campaign(chosen_campaign(campaign, outputs, with_results=True), Question(allow=tuple(allow or ())))
    if markdown:
        from gpubench.report.markdown import markdown as written

        say_text(written(report_inputs(judged)))
    else:
        show_verdicts(judged.verdicts, judged.accounting)
        show_notes(judged)


def scaling(
    campaign: options.MaybeResults = None,
    other: options.Other = None,
    baseline: Annotated[str | None, typer.Option(help="With B: the variant of A; default: the common one.")] = None,
    candidate: Annotated[str | None, typer.Option(help="With B: the variant of B; default: the common one.")] = None,
    margin: options.Margin = None,
    summary: Annotated[
        str | None, typer.Option(help="With B: mean, geomean or median of a run; default: as planned.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="With B: write one page that opens offline, too.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    outputs: options.Outputs = None,
) -> None:
    """Speed-up and efficiency over nodes and workers. With intervals, the scalability law, the scheduler's share.

    With a second campaign or import (the same suite on Slurm and on Kubernetes, say): both curves side by side, with a
    verdict at every size that both have. Sizes whose workers are laid out otherwise are refused, not compared.
    """
    if campaign is not None and other is not None:
        from gpubench.cli.results.side_by_side import scale_sides

        margin_given = CampaignOptions(margin=margin).chosen_margin()
        scale_sides(
            campaign, other, baseline, candidate, margin=margin_given, summary=summary, as_json=as_json, page=html
        )
        return
    if baseline or candidate or margin or summary or html:
        raise UsageError(
            "--baseline, --candidate, --margin, --summary and --html are for two directories", then="name a second"
        )
    from gpubench.cli.results.open_target import is_import
    from gpubench.cli.results.scaling import show_scaling

    if campaign is not None and is_import(campaign):
        from gpubench.cli.results.imported import scale_imported

        scale_imported(campaign, as_json=as_json)
        return
    show_scaling(campaign, outputs, as_json=as_json)


def links(
    campaign: options.MaybeResults = None,
    workload: Annotated[
        str | None,
        typer.Option(
            help="Only this workload; default: all that moved something.", autocompletion=completion.workloads
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    outputs: options.Outputs = None,
) -> None:
    """How fast each pair of workers was, by class of link. Slow links and nodes, where there are enough to tell."""
    from gpubench.cli.results.links import show_links

    show_links(campaign, outputs, workload, as_json=as_json)


def explain(
    first: Annotated[
        str, typer.Argument(metavar="A", help="A run: its id, the beginning of it, or its directory. Or a variant.")
    ],
    second: Annotated[str, typer.Argument(metavar="B", help="The other run, also of another campaign, or variant.")],
    variants: Annotated[
        bool, typer.Option("--variants", help="A and B are variants, compared over all blocks.")
    ] = False,
    campaign: Annotated[
        Path | None,
        typer.Option(
            help="Campaign of the runs or variants; default: the newest with results in outputs/.",
            autocompletion=completion.campaigns,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """What differs between two runs or two variants. Planned or not, with the noise of both beside it."""
    from gpubench.cli.results import explain

    which = explain.explain_variants if variants else explain.explain_runs
    which(first, second, campaign, as_json=as_json)


def report(
    campaign: options.MaybeResults = None,
    svg: options.Svg = None,
    png: options.Png = None,
    terminal: Annotated[bool, typer.Option("--terminal", help="Also draw effects and efficiency here.")] = False,
    allow: options.Allow = None,
    outputs: options.Outputs = None,
) -> None:
    """Merge, judge, and write report.html and report.md. Opens offline; a pack's is NAME.report.html beside it."""
    from gpubench.cli.campaign.display import show_verdicts, write_report
    from gpubench.cli.results.charts import show_charts, write_charts
    from gpubench.cli.results.judge import judge_campaign
    from gpubench.cli.results.open_target import chosen_campaign, is_import
    from gpubench.stats.question import Question

    if campaign is not None and is_import(campaign):
        from gpubench.cli.results.imported import report_imported

        if allow:
            raise UsageError("--allow: an import says nothing of its environment", then="leave it out")
        report_imported(campaign, {"svg": svg, "png": png}, terminal=terminal)
        return
    judged = judge_campaign(chosen_campaign(campaign, outputs, with_results=True), Question(allow=tuple(allow or ())))
    show_verdicts(judged.verdicts, judged.accounting)
    inputs = write_report(judged)
    if svg:
        write_charts(inputs, svg, "svg")
    if png:
        write_charts(inputs, png, "png")
    if terminal:
        show_charts(inputs)
