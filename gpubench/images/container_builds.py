"""Container images, built from their recipes."""

import dataclasses
import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gpubench import resources
from gpubench.errors import GpubenchError
from gpubench.images import manifests
from gpubench.images.docker.build import BuildJob, BuildOutcome, Display, build_all
from gpubench.images.docker.engine import Engine
from gpubench.images.manifests import BUILD_MANIFEST
from gpubench.model.images_lock import LockRow
from gpubench.model.recipe import Recipe
from gpubench.render.context import BuildContext, render_context

AT_ONCE = 2
"""Builds at once: they share the engine's disk and the network; more of them don't end sooner."""


@dataclasses.dataclass(frozen=True)
class BuiltContainer:
    """One recipe's outcome; ``row`` is None where it failed."""

    recipe: Recipe
    outcome: BuildOutcome
    row: LockRow | None
    error: GpubenchError | None


@dataclasses.dataclass(frozen=True)
class Plain:
    """A display for those who only want to know what takes long: a line when an image is done."""

    say: Callable[[str], None]

    def step(self, name: str, text: str, share: float) -> None:
        """Nothing."""

    def done(self, name: str) -> None:
        """One line."""
        self.say(f"built {name}")

    def fail(self, name: str, line: str) -> None:
        """One line."""
        self.say(f"failed {name}: {line}")


def contexts(recipes: Sequence[Recipe], engine: Engine | None, *, gpubench: str) -> dict[str, BuildContext]:
    """The build context of every recipe, by spec; with an engine, the base pinned to what it really is."""
    templates = resources.texts("templates")
    sources = resources.docker_sources()
    return {
        recipe.spec: render_context(
            recipe.model_copy(update={"pinned": engine.pin(recipe.base)}) if engine else recipe,
            templates,
            sources,
            gpubench=gpubench,
        )
        for recipe in recipes
    }


def build_all_images(
    engine: Engine,
    recipes: Sequence[Recipe],
    rendered: Mapping[str, BuildContext],
    *,
    root: Path,
    date: str,
    push: bool,
    show: Display,
    at_once: int = AT_ONCE,
    keep: Callable[[LockRow], None] = lambda _row: None,
) -> list[BuiltContainer]:
    """Build every recipe, and push it where that is asked for; one that fails leaves the others.

    What several versions share is built first and once: side by side, each would fetch the whole stack for itself, and
    store and push a layer of its own.

    Args:
        engine: where they are built.
        wanted: in this order.
        rendered: see ``contexts``.
        root: ``paths.images``; logs and manifests are kept there.
        date: ``YYYYMMDD`` for the tag; empty: today.
        push: to the site's registry.
        show: gets every step, by the names of ``steps``.
        at_once: builds at the same time.
        keep: gets each row as soon as its image is there, so that what ends the others doesn't lose it.
    """
    date = date or dt.datetime.now().astimezone().strftime("%Y%m%d")
    logs = root / "logs"
    shared = {
        recipe.stack: _job(recipe, rendered[recipe.spec], date, push=False, stack=True) for recipe in _shared(recipes)
    }
    stacks = dict(zip(shared, build_all(list(shared.values()), at_once=at_once, logs=logs, show=show), strict=True))
    broken = {stack: outcome for stack, outcome in stacks.items() if outcome.error}
    possible = [recipe for recipe in recipes if recipe.stack not in broken]
    jobs = [_job(recipe, rendered[recipe.spec], date, push=push) for recipe in possible]
    by_spec = {recipe.spec: recipe for recipe in recipes}
    built: dict[str, BuiltContainer] = {}

    def ended(outcome: BuildOutcome, spec: str = "") -> None:
        recipe = by_spec[spec or outcome.job.name]
        build = _built(engine, recipe, rendered[recipe.spec], outcome, root=root, date=date)
        if build.row:
            keep(build.row)
        built[recipe.spec] = build

    for recipe in recipes:
        if recipe.stack in broken:
            ended(broken[recipe.stack], recipe.spec)
    build_all(jobs, at_once=at_once, logs=logs, show=show, ended=ended)
    return [built[recipe.spec] for recipe in recipes]


def steps(recipes: Sequence[Recipe]) -> list[str]:
    """What a display will hear of, in the order in which it begins."""
    return [*(_stack_name(recipe) for recipe in _shared(recipes)), *(recipe.spec for recipe in recipes)]


def _shared(recipes: Sequence[Recipe]) -> list[Recipe]:
    """The first recipe of every stack that several recipes share."""
    by_stack: dict[str, list[Recipe]] = {}
    for recipe in recipes:
        by_stack.setdefault(recipe.stack, []).append(recipe)
    return [several[0] for several in by_stack.values() if len(several) > 1]


def _stack_name(recipe: Recipe) -> str:
    return f"stack-{recipe.stack}"


def _job(recipe: Recipe, context: BuildContext, date: str, *, push: bool, stack: bool = False) -> BuildJob:
    settings = recipe.settings
    return BuildJob(
        name=_stack_name(recipe) if stack else recipe.spec,
        files=context.files,
        labels={} if stack else context.labels,
        tag=_stack_name(recipe) if stack else recipe.tag(date),
        target="shared" if stack else "",
        network=settings.build_network,
        architecture=settings.architecture,
        push=settings.registry if push else "",
    )


def _built(
    engine: Engine, recipe: Recipe, context: BuildContext, outcome: BuildOutcome, *, root: Path, date: str
) -> BuiltContainer:
    if outcome.error:
        return BuiltContainer(recipe, outcome, None, outcome.error)
    try:
        document = manifests.read_manifest(engine.read_file(outcome.image, BUILD_MANIFEST), outcome.job.tag)
        manifest = manifests.keep(root, document)
    except GpubenchError as error:
        return BuiltContainer(recipe, outcome, None, error)
    row = LockRow(
        kind="docker",
        spec=recipe.spec,
        site=recipe.site,
        registry=outcome.job.push,
        date=date,
        tag=recipe.tag(date),
        digest=outcome.digest or outcome.image,
        build_id=context.build_id,
        ucx_version=document["ucx"]["version"],
        ucx_commit=recipe.ucx_commit,
        binding=recipe.binding,
        stack=recipe.stack,
        python=context.python,
        env=dict(context.env),
        manifest=manifest,
        architecture=recipe.settings.architecture,
        base=recipe.base,
    )
    return BuiltContainer(recipe, outcome, row, None)
