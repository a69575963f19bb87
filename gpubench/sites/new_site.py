"""``gpubench sites new``: a commented profile to begin with, which holds what a command said beyond doubt."""

import logging
from collections.abc import Iterator
from pathlib import Path

from gpubench import resources
from gpubench.errors import PlanRefusedError, UsageError
from gpubench.files import create_exclusively
from gpubench.model.base import check_name, nearest
from gpubench.plan.adapter_combinations import VALID
from gpubench.render.jinja import environment
from gpubench.runtimes import RUNTIMES
from gpubench.schedulers import BATCH, LOCAL
from gpubench.schedulers.batch import BatchScheduler
from gpubench.sites.survey import survey

_log = logging.getLogger(__name__)

TEMPLATE = "new/site.toml.j2"
FILL_IN = "# fill in:"


def new_site(name: str, scheduler: str, launcher: str | None, runtime: str, folder: Path, *, queue: str = "") -> None:
    """Write ``NAME.toml``; ``queue`` is the one that jobs go to, empty where that is to be filled in.

    Raises:
        UsageError: no such name can be, the file exists, an adapter or the queue doesn't exist.
        PlanRefusedError: the adapters don't go together.
    """
    try:
        check_name(name)
    except ValueError as error:
        raise UsageError(f"'{name}': {error}") from None
    path = folder / f"{name}.toml"
    launcher = _launcher(scheduler, launcher, runtime)
    facts, batch = survey(scheduler, queue), BATCH.get(scheduler)
    template = environment(resources.texts("templates", TEMPLATE)).get_template(TEMPLATE)
    text = template.render(
        name=name,
        path=path,
        schema=resources.schema("site").as_uri(),
        scheduler=scheduler,
        launcher=launcher,
        runtime=runtime,
        queue=batch.QUEUE if isinstance(batch, BatchScheduler) else "",
        one_machine=scheduler in LOCAL,
        kind=RUNTIMES[runtime].KIND,
        known=facts.known,
        seen=facts.seen,
    )
    try:
        create_exclusively(path, text)
    except FileExistsError:
        raise UsageError(
            f"{path} exists already, and is left as it is", then="take another name, or --out FOLDER"
        ) from None
    missing = list(to_fill_in(text))
    _log.info(f"{path}{': fill in ' if missing else ''}{', '.join(missing)}")
    _log.info(f"next: gpubench sites check {path}")


def to_fill_in(text: str) -> Iterator[str]:
    """Dotted keys of the lines of a new profile that ask for a value and have none."""
    table = ""
    for line in text.splitlines():
        if line.startswith("["):
            table = f"{line.strip('[]')}."
        if FILL_IN in line and line.partition("#")[0].rstrip().endswith(('""', "[]")):
            yield table + line.partition(" ")[0]


def _launcher(scheduler: str, launcher: str | None, runtime: str) -> str:
    """The launcher that is named, else the first that goes with the scheduler and the runtime."""
    for at, (kind, word) in enumerate((("scheduler", scheduler), ("launcher", launcher), ("runtime", runtime))):
        if word is not None and word not in (names := sorted({combination[at] for combination in VALID})):
            raise UsageError(f"there is no {kind} '{word}'{nearest(word, names)}")
    of_scheduler = sorted(combination for combination in VALID if combination[0] == scheduler)
    fitting = [
        combination for combination in of_scheduler if combination[2] == runtime and launcher in (None, combination[1])
    ]
    if not fitting:
        raise PlanRefusedError(
            f"{' + '.join(filter(None, (scheduler, launcher, runtime)))} don't go together",
            then=f"they go together: {'; '.join(' + '.join(combination) for combination in of_scheduler)}",
        )
    return fitting[0][1]
