"""Container images, built from their recipes."""

import datetime as dt
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpubench import __version__, resources
from gpubench.errors import GpubenchError
from gpubench.images.docker.build import BuildJob, BuildOutcome, build_all
from gpubench.images.docker.engine import Engine
from gpubench.images.docker.names import require_architecture
from gpubench.images.lock import add_rows
from gpubench.images.manifests import BUILD_MANIFEST, from_labels, read_manifest, reference
from gpubench.model.images_lock import LockRow
from gpubench.model.recipe import Recipe
from gpubench.render.context import BuildContext, render_context

_log = logging.getLogger(__name__)


def contexts(recipes: Sequence[Recipe], engine: Engine | None) -> dict[str, BuildContext]:
    """The build context of every recipe, by spec; with an engine, the base pinned to what it really is."""
    templates = resources.texts("templates")
    sources = resources.docker_sources()

    def pinned(recipe: Recipe) -> Recipe:
        if engine is None:
            return recipe
        return recipe.model_copy(update={"pinned": engine.pin(recipe.base, recipe.settings.architecture)})

    return {recipe.spec: render_context(pinned(recipe), templates, sources, gpubench=__version__) for recipe in recipes}


def build_all_images(
    engine: Engine,
    recipes: Sequence[Recipe],
    rendered: Mapping[str, BuildContext],
    *,
    root: Path,
    date: str = "",
    push: bool = False,
) -> dict[str, LockRow | GpubenchError]:
    """Build every recipe, and push it where that is asked for; one that fails leaves the others.

    What several versions share is built first and once: side by side, each would fetch the whole stack for itself, and
    store and push a layer of its own. An image is locked as soon as it is there, so that what ends the others doesn't
    lose it.

    Args:
        engine: where they are built.
        rendered: see ``contexts``.
        root: ``paths.images``; logs are kept there.
        date: ``YYYYMMDD`` for the tag; empty: today.
        push: to the site's registry.
    """
    date = date or dt.datetime.now().astimezone().strftime("%Y%m%d")
    logs = root / "logs"
    stacks = {f"stack-{recipe.stack}": recipe for recipe in _shared(recipes)}
    by_spec = {recipe.spec: recipe for recipe in recipes}
    results: dict[str, LockRow | GpubenchError] = {}

    def stack_ended(outcome: BuildOutcome) -> None:
        if outcome.error is None:
            _log.info(f"{outcome.job.name}: built")
            return
        _tell(outcome, outcome.error)
        stack = stacks[outcome.job.name].stack
        results.update({recipe.spec: outcome.error for recipe in recipes if recipe.stack == stack})

    def ended(outcome: BuildOutcome) -> None:
        recipe = by_spec[outcome.job.name]
        result = _row_or_error(engine, recipe, rendered[recipe.spec], outcome)
        results[recipe.spec] = result
        if isinstance(result, LockRow):
            add_rows([result])
            _log.info(f"{recipe.spec}: {reference(result)}")
        else:
            _tell(outcome, result)

    _log.info(f"building {', '.join([*stacks, *by_spec])}; what is printed is in {logs}")
    jobs = [_job(recipe, rendered[recipe.spec], name, tag=name, target="shared") for name, recipe in stacks.items()]
    build_all(engine, jobs, logs, stack_ended)
    jobs = [
        _job(recipe, rendered[spec], spec, tag=recipe.tag(date), push=push)
        for spec, recipe in by_spec.items()
        if spec not in results
    ]
    build_all(engine, jobs, logs, ended)
    return results


def _tell(outcome: BuildOutcome, error: GpubenchError) -> None:
    for line in outcome.lines:
        _log.info(f"{outcome.job.name}: {line}")
    _log.warning(str(error))


def _shared(recipes: Sequence[Recipe]) -> list[Recipe]:
    """The first recipe of every stack that several recipes share."""
    by_stack: dict[str, list[Recipe]] = {}
    for recipe in recipes:
        by_stack.setdefault(recipe.stack, []).append(recipe)
    return [several[0] for several in by_stack.values() if len(several) > 1]


def _job(
    recipe: Recipe, context: BuildContext, name: str, *, tag: str, target: str = "", push: bool = False
) -> BuildJob:
    settings = recipe.settings
    return BuildJob(
        name=name,
        files=context.files,
        labels={} if target else context.labels,
        tag=tag,
        target=target,
        network=settings.build_network,
        architecture=settings.architecture,
        push=settings.registry if push else "",
    )


def _row_or_error(
    engine: Engine, recipe: Recipe, context: BuildContext, outcome: BuildOutcome
) -> LockRow | GpubenchError:
    if outcome.error:
        return outcome.error
    try:
        require_architecture(engine.architecture(outcome.image), recipe.settings.architecture, "what was built")
        job = outcome.job
        document = read_manifest(engine.read_file(outcome.image, BUILD_MANIFEST), job.tag)
        return from_labels(context.labels, document, registry=job.push, tag=job.tag, digest=outcome.digest)
    except GpubenchError as error:
        return type(error)(f"image {recipe.spec}: {error.what}", then=error.then)
