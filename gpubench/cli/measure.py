"""``gpubench measure``: one workload by itself."""

import contextlib
import json
import sys

import typer

from gpubench.campaign.options import MeasureOptions
from gpubench.cli.options import with_options
from gpubench.cli.say import say_lines, say_text


def register(app: typer.Typer) -> None:
    app.command()(with_options(measure))


def measure(options: MeasureOptions) -> None:
    """Measure one workload. With every check that a campaign makes.

    Exits 4 if it failed or its answer was wrong.
    """
    from gpubench.campaign import measure
    from gpubench.campaign.measure_result import require_ok, result_lines
    from gpubench.cli.progress import progress_for

    # With --json, progress goes to standard error, so that standard output is one object.
    with contextlib.redirect_stdout(sys.stderr) if options.as_json else contextlib.nullcontext():
        result = measure.measure(options, progress_for)
    if options.as_json:
        say_text(json.dumps(result, indent=1, ensure_ascii=False))
    else:
        say_lines(result_lines(result))
    require_ok(result)
