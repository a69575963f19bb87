"""Stacks without a container: a conda prefix, with every version from the row's pins; a site's modules, loaded."""

import dataclasses
import hashlib
import tomllib
from collections.abc import Mapping

from gpubench.model.recipe import Recipe
from gpubench.model.site import ImageSettings
from gpubench.node.spec.plain import content_id
from gpubench.render import ucx
from gpubench.render.jinja import environment
from gpubench.render.ucx import facts, process_env
from gpubench.runtimes.base import Expanded

SCRIPT = "create.sh"


@dataclasses.dataclass(frozen=True)
class Prefix:
    """A conda prefix before it is made.

    Args:
        files: the script that makes it, and all that it reads.
        path: where it will lie, absolute; it can't be moved.
    """

    files: dict[str, bytes]
    path: str


def render_environment(recipe: Recipe, templates: Mapping[str, str], sources: Mapping[str, bytes]) -> str:
    """``environment.yml`` of a recipe; ``sources`` are the files below ``docker/``, the row's pins among them.

    A row whose packages are wheels gets only its Python from conda.
    """
    pinned = recipe.stack_source == "conda"
    pins = (
        tomllib.loads(sources[recipe.lock].decode()) if pinned else {"channels": ["conda-forge"], "packages": ["pip"]}
    )
    cuda = [f"cudatoolkit={recipe.cuda}", *pins["cuda"]] if pinned and recipe.cuda else []
    packages = sorted([f"python={recipe.python}", *pins["packages"], *cuda])
    template = environment(templates).get_template("conda/environment.yml.j2")
    return template.render(
        stack=recipe.stack, site=recipe.site, pinned=pinned, channels=pins["channels"], packages=packages
    )


def render_prefix(recipe: Recipe, templates: Mapping[str, str], sources: Mapping[str, bytes], folder: str) -> Prefix:
    """The prefix of a recipe below ``folder``, named by all that goes into it: another content is another prefix."""
    recipe = recipe.model_copy(update={"base": "", "pinned": ""})
    files = {
        "environment.yml": render_environment(recipe, templates, sources).encode(),
        "describe.py": sources["context/describe.py"],
        **wheel_files(recipe, sources),
    }
    script = "conda/create.sh.j2"
    build_id = content_id(
        {
            "recipe": recipe.model_dump(),
            "script": templates[script],
            "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
        }
    )
    path = f"{folder}/conda/{recipe.stack}-{build_id}"
    home = recipe.settings.cuda_home
    template = environment(templates).get_template(script)
    made = template.render(
        recipe=recipe,
        prefix=path,
        build_id=build_id,
        cuda_home=[Expanded(home)] if home else [],
        configure=ucx.configure(recipe, home),
    )
    env = process_env(f"{path}/ucx/lib")
    lock_hash = hashlib.sha256(sources[recipe.lock]).hexdigest()
    files["build.json"] = facts(recipe, kind="conda", build_id=build_id, lock_hash=lock_hash, env=env)
    files[SCRIPT] = made.encode()
    return Prefix(dict(sorted(files.items())), path)


def wheel_files(recipe: Recipe, sources: Mapping[str, bytes]) -> dict[str, bytes]:
    """What a build reads of a stack, or of a UCX, whose packages are wheels."""
    files: dict[str, bytes] = {}
    if recipe.stack_source == "wheels":
        files |= {"stack.txt": sources[recipe.lock], "libucx.py": sources["venv/libucx.py"]}
    if recipe.source == "wheel":
        files["ucx.txt"] = f"libucx-cu12=={recipe.ucx_version} --hash=sha256:{recipe.wheel_sha256}\n".encode()
    return files


LOAD_SCRIPT = "load.sh"


def render_modules(site: str, settings: ImageSettings, spec: str, templates: Mapping[str, str]) -> str:
    """Shell that loads the profile's modules for a UCX spec and puts its prefix in front.

    Raises:
        ValueError: a control character in one of the names.
    """
    modules = [name.replace("{ucx}", spec) for name in settings.modules]
    prefix = settings.prefix.replace("{ucx}", spec)
    template = "modules/load.sh.j2"
    return environment(templates).get_template(template).render(site=site, modules=modules, prefix=prefix)
