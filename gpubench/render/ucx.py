"""How UCX is built from source, and ``build.json``: what is known about an image before it is built."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.model.recipe import Recipe
from gpubench.runtimes.base import Expanded

# By configure word, which ``image.fabric`` may name: what runs with it, and what it is built with.
FABRIC = {
    "rdmacm": (("librdmacm1",), ("librdmacm-dev",)),
    "verbs": (("ibverbs-providers", "libibverbs1", "rdma-core"), ("libibverbs-dev",)),
}
_BUILD = (
    "autoconf",
    "automake",
    "ca-certificates",
    "g++",
    "gcc",
    "git",
    "libnuma-dev",
    "libtool",
    "make",
    "pkg-config",
)


def runtime_packages(fabric: list[str]) -> list[str]:
    """Packages that a UCX with these ``configure`` words needs where it runs; its ucx_perftest needs libgomp."""
    return sorted({"libgomp1", "libnuma1"}.union(*(FABRIC[word][0] for word in fabric)))


def build_packages(fabric: list[str]) -> list[str]:
    return sorted({*_BUILD}.union(*(FABRIC[word][1] for word in fabric)))


def configure(recipe: Recipe, cuda_home: str = "") -> list[str]:
    """Words behind ``configure-release --prefix=…``: CUDA and what ``image.fabric`` may name are never guessed.

    Nor are bindings of other languages, which no run loads: for Java, Maven would fetch packages.
    ``cuda_home`` is where CUDA's toolkit lies, with variables for the shell; empty: where NVIDIA's images have it.
    """
    fabric = recipe.settings.fabric
    options = [
        *("--enable-cma", "--enable-mt", "--enable-numa", "--with-gnu-ld", "--without-go", "--without-java"),
        *with_fabric(fabric),
        *(with_cuda(cuda_home) if recipe.cuda else ["--without-cuda"]),
    ]
    if recipe.cuda and recipe.settings.compute_capability:
        # Without it UCX builds its kernels for every GPU, or, in some versions, for the A100 alone.
        gpu = recipe.settings.compute_capability.replace(".", "")
        options.append(f"--with-nvcc-gencode=-gencode=arch=compute_{gpu},code=sm_{gpu}")
    return options


def with_fabric(fabric: Sequence[str]) -> list[str]:
    return [f"--{'with' if word in fabric else 'without'}-{word}" for word in sorted(FABRIC)]


def with_cuda(home: str) -> list[str]:
    """CUDA's words; ``home`` as for ``configure``. UCX's modules load libcudart, where no variable of a run leads."""
    path = home or "/usr/local/cuda"
    options = [f"--with-cuda={path}", f"LDFLAGS=-Wl,-rpath,{path}/lib64"]
    return [*map(Expanded, options)] if home else options


BINDING_ENV = {"RAPIDS_LIBUCX_PREFER_SYSTEM_LIBRARY": "true"}
"""What every image sets in every process, wherever its UCX lies."""


def process_env(libraries: str) -> dict[str, str]:
    """What an image whose UCX lies in the folder ``libraries`` sets in every process; the run spec carries it."""
    return {"LD_LIBRARY_PATH": libraries, **BINDING_ENV}


def facts(recipe: Recipe, *, kind: str, build_id: str, lock_hash: str, env: Mapping[str, str]) -> bytes:
    """``build.json`` of a recipe's image."""
    return dump(
        {
            "kind": kind,
            "build_id": build_id,
            "base": {"name": recipe.base, "digest": recipe.pinned, "cuda": recipe.cuda},
            "env": dict(env),
            "ucx": {
                "spec": recipe.spec,
                "source": recipe.source,
                "version": recipe.ucx_version,
                "release": recipe.ucx_release,
                "commit": recipe.ucx_commit,
            },
            "stack": {"name": recipe.stack, "lock": lock_hash},
            "binding": {"name": recipe.binding, "version": recipe.binding_version, "scheme": recipe.scheme},
        }
    )


def dump(plain: Mapping[str, Any]) -> bytes:
    """The bytes of ``build.json``; the same facts give the same bytes."""
    return (json.dumps(plain, indent=1, sort_keys=True) + "\n").encode()
