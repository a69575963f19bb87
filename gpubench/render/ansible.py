"""What prepares the nodes of a site: an Ansible playbook, the files that it brings, the conda environment. Pure."""

import json
import tomllib
from collections.abc import Mapping

from gpubench.model.recipe import Recipe
from gpubench.model.site import Site
from gpubench.render import ucx
from gpubench.render.conda import render_environment
from gpubench.render.context import MINIFORGE
from gpubench.render.jinja import environment

PLAYBOOK = "prereqs.yml"
ENVIRONMENT = "environment.yml"
CUDA = "locks/cuda-toolkit.toml"

_RPM = {
    "g++": "gcc-c++",
    "ibverbs-providers": "libibverbs",
    "libibverbs-dev": "rdma-core-devel",
    "libibverbs1": "libibverbs",
    "libgomp1": "libgomp",
    "libnuma-dev": "numactl-devel",
    "libnuma1": "numactl-libs",
    "librdmacm-dev": "rdma-core-devel",
    "librdmacm1": "librdmacm",
    "pkg-config": "pkgconf-pkg-config",
}
"""Packages of Red Hat's distributions by the name that Debian's have, where the two differ."""


def render_prereqs(
    site: Site, recipe: Recipe, shared: str, templates: Mapping[str, str], sources: Mapping[str, bytes]
) -> dict[str, bytes]:
    """Files by name; the same arguments give the same bytes.

    Args:
        recipe: names the stack whose Python packages the conda environment holds, and the CUDA release.
        shared: absolute directory that every node sees, for images.
    """
    fabric = site.image.fabric
    packages = sorted({"rsync", *ucx.runtime_packages(fabric), *ucx.build_packages(fabric)})
    installer = tomllib.loads(sources[MINIFORGE].decode())
    architecture = site.image.architecture
    playbook = environment(templates).get_template("ansible/prereqs.yml.j2")
    text = playbook.render(
        site=site.name,
        shared=_yaml(shared),
        packages={"Debian": packages, "RedHat": sorted({_RPM.get(name, name) for name in packages})},
        miniforge=installer["version"],
        url=_yaml(installer["url"].format(version=installer["version"], architecture=architecture)),
        sha256=installer["sha256"].get(architecture, ""),
        cuda=recipe.cuda,
        toolkit=tomllib.loads(sources[CUDA].decode()).get(recipe.cuda, ""),
    )
    return {PLAYBOOK: text.encode(), ENVIRONMENT: ("---\n" + render_environment(recipe, templates, sources)).encode()}


def _yaml(text: str) -> str:
    """A scalar that YAML and Ansible's own templates leave as it is: JSON is YAML, and ``{{`` is no expression."""
    quoted = json.dumps(text, ensure_ascii=False)
    return f"!unsafe {quoted}" if "{{" in text or "{%" in text or "{#" in text else quoted
