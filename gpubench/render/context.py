"""A recipe → the build context of its image. Pure: the same input gives the same bytes and the same build id."""

import dataclasses
import hashlib
import tomllib
from collections.abc import Mapping

from gpubench.model.recipe import Recipe
from gpubench.node.spec.plain import content_id
from gpubench.render import ucx
from gpubench.render.conda import render_environment, wheel_files
from gpubench.render.jinja import environment
from gpubench.render.ucx import facts, process_env

PYTHON = "/opt/gpubench/stack/bin/python"
LIBRARIES = "/opt/gpubench/ucx/lib"
MINIFORGE = "locks/miniforge.toml"

DRIVER = "/usr/local/nvidia/lib:/usr/local/nvidia/lib64:/.singularity.d/libs"
"""Where some clusters mount the driver's libraries without telling ld.so: as the images nvidia/cuda have it in
LD_LIBRARY_PATH, which this image replaces (https://gitlab.com/nvidia/container-images/cuda, Dockerfile of base); and
where ``apptainer --nv`` binds them (container_linux.go, ``addLibsMount``)."""

_TEMPLATES = ("docker/", "conda/environment")


@dataclasses.dataclass(frozen=True)
class BuildContext:
    """The files of a build context, ``Dockerfile`` among them, and the labels of the image."""

    files: dict[str, bytes]
    labels: dict[str, str]


def render_context(
    recipe: Recipe, templates: Mapping[str, str], sources: Mapping[str, bytes], *, gpubench: str
) -> BuildContext:
    lock_hash = hashlib.sha256(sources[recipe.lock]).hexdigest()
    files = {"gpubench": sources["context/gpubench"], "describe.py": sources["context/describe.py"]}
    files |= wheel_files(recipe, sources)
    if recipe.stack_source == "conda":
        files["environment.yml"] = render_environment(recipe, templates, sources).encode()
    build_id = _build_id(recipe, templates, files, gpubench)
    labels = _labels(recipe, build_id, lock_hash, gpubench)
    files["build.json"] = facts(recipe, kind="docker", build_id=build_id, lock_hash=lock_hash, env=_process_env(recipe))
    files["Dockerfile"] = _dockerfile(recipe, templates, sources, labels, gpubench)
    return BuildContext(dict(sorted(files.items())), labels)


def _build_id(recipe: Recipe, templates: Mapping[str, str], files: Mapping[str, bytes], gpubench: str) -> str:
    texts = {name: text.encode() for name, text in templates.items() if name.startswith(_TEMPLATES)}
    return content_id(
        {
            "recipe": recipe.model_dump(),
            "gpubench": gpubench,
            "files": {name: hashlib.sha256(data).hexdigest() for name, data in {**texts, **files}.items()},
        },
        length=32,
    )


def _labels(recipe: Recipe, build_id: str, lock_hash: str, gpubench: str) -> dict[str, str]:
    oci = {
        "title": f"UCX {recipe.ucx_version} with {recipe.stack}",
        "version": recipe.ucx_version,
        "revision": recipe.ucx_commit,
        "source": recipe.ucx_repository,
        "base.name": recipe.base,
        "base.digest": recipe.pinned.rpartition("@")[2],
    }
    own = {
        "build-id": build_id,
        "ucx-spec": recipe.spec,
        "ucx-version": recipe.ucx_version,
        "ucx-source": recipe.source,
        "ucx-commit": recipe.ucx_commit,
        "binding": recipe.binding,
        "stack": recipe.stack,
        "lock": lock_hash,
        "gpubench": gpubench,
        "python": PYTHON,
        "architecture": recipe.settings.architecture,
        "site": recipe.site,
    }
    labels = {f"org.opencontainers.image.{key}": value for key, value in oci.items() if value}
    return labels | {f"io.gpubench.{key}": value for key, value in own.items()}


def _dockerfile(
    recipe: Recipe,
    templates: Mapping[str, str],
    sources: Mapping[str, bytes],
    labels: Mapping[str, str],
    gpubench: str,
) -> bytes:
    settings = recipe.settings
    wheels = recipe.stack_source == "wheels"
    python = ("python3", "python3-venv") if wheels else ()
    template = environment(templates).get_template("docker/Dockerfile.j2")
    text = template.render(
        recipe=recipe,
        gpubench=gpubench,
        packages=sorted({*python, *settings.packages, *ucx.runtime_packages(settings.fabric)}),
        build_packages=ucx.build_packages(settings.fabric),
        configure=ucx.configure(recipe),
        compiled=recipe.binding == "ucx-py",
        python_check=_python_check(recipe),
        miniforge=None if wheels else _miniforge(recipe, sources),
        env={**_process_env(recipe), **_device_env(recipe)},
        labels=labels,
    )
    return text.encode()


def _process_env(recipe: Recipe) -> dict[str, str]:
    """What the image sets in every process; the node half gets it from the run spec."""
    return process_env(f"{LIBRARIES}:{DRIVER}" if recipe.gpus else LIBRARIES)


def _device_env(recipe: Recipe) -> dict[str, str]:
    """What the hooks of container runtimes read: some end the start where the devices that it names aren't there."""
    gpus, fabric = ("all" if is_present else "void" for is_present in (recipe.gpus, recipe.settings.fabric))
    capabilities = {"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"} if recipe.gpus else {}
    return {"NVIDIA_VISIBLE_DEVICES": gpus, **capabilities, "MELLANOX_VISIBLE_DEVICES": fabric}


def _python_check(recipe: Recipe) -> str:
    low, high = (tuple(int(part) for part in end.split(".")) for end in (recipe.python, recipe.python_max))
    versions = recipe.python if low == high else f"{recipe.python} to {recipe.python_max}"
    says = f"gpubench: stack {recipe.stack} needs Python {versions}, the base {recipe.base} has %d.%d"
    return f"import sys; v = sys.version_info[:2]; sys.exit(0 if {low} <= v <= {high} else '{says}' % v)"


def _miniforge(recipe: Recipe, sources: Mapping[str, bytes]) -> dict[str, str]:
    table = tomllib.loads(sources[MINIFORGE].decode())
    architecture = recipe.settings.architecture
    url = table["url"].format(version=table["version"], architecture=architecture)
    return {"url": url, "sha256": table["sha256"][architecture]}
