"""A conda stack: ``environment.yml`` with every version from the row's pins, and the script that makes a prefix."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping

from gpubench.model.recipe import Recipe
from gpubench.render import ucx
from gpubench.render.environment import environment
from gpubench.spec.plain import content_id


def render_environment(recipe: Recipe, templates: Mapping[str, str], sources: Mapping[str, bytes]) -> str:
    """``environment.yml`` of a recipe; ``sources`` are the files below ``docker/``, the row's pins among them."""
    pins = tomllib.loads(sources[recipe.lock].decode())
    cuda = [f"cudatoolkit={recipe.cuda}", *pins["cuda"]] if recipe.cuda else []
    return (
        environment(templates)
        .get_template("conda/environment.yml.j2")
        .render(
            stack=recipe.stack,
            site=recipe.site,
            channels=pins["channels"],
            packages=sorted([f"python={recipe.python}", *pins["packages"], *cuda]),
        )
    )


def render_prefix(
    recipe: Recipe, templates: Mapping[str, str], sources: Mapping[str, bytes], folder: str
) -> tuple[dict[str, bytes], str]:
    """``environment.yml`` and ``create.sh``, which makes a prefix below ``folder``, and the prefix's path.

    The prefix is named by all that goes into it: another content is another prefix.
    """
    text = render_environment(recipe, templates, sources)
    script = environment(templates).get_template("conda/create.sh.j2")
    key = content_id({"environment": text, "recipe": recipe.model_dump(), "script": templates["conda/create.sh.j2"]})
    prefix = f"{folder}/conda/{recipe.stack}-{key}"
    made = script.render(recipe=recipe, prefix=prefix, key=key, configure=ucx.configure(recipe))
    return {"environment.yml": text.encode(), "create.sh": made.encode()}, prefix
