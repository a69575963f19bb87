"""How UCX is built from source: the distribution's packages and the words of ``configure``."""

from __future__ import annotations

from gpubench.model.recipe import Recipe

# By configure word: what runs with it, and what it is built with.
_FABRIC = {
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
    """Packages that a UCX with these ``configure`` words needs where it runs."""
    return sorted({"libnuma1"}.union(*(_FABRIC[word][0] for word in fabric)))


def build_packages(fabric: list[str]) -> list[str]:
    """Packages that compile it."""
    return sorted({*_BUILD}.union(*(_FABRIC[word][1] for word in fabric)))


def configure(recipe: Recipe) -> list[str]:
    """Words behind ``configure-release --prefix=…``; what isn't wanted is switched off, never guessed."""
    fabric = recipe.settings.fabric
    words = [
        *("--enable-cma", "--enable-mt", "--enable-numa", "--with-gnu-ld"),
        *(f"--{'with' if word in fabric else 'without'}-{word}" for word in sorted(_FABRIC)),
        "--with-cuda=/usr/local/cuda" if recipe.cuda else "--without-cuda",
    ]
    if recipe.cuda and recipe.settings.compute_capability:
        # Without it UCX builds its kernels for every GPU, or, in some versions, for the A100 alone.
        gpu = recipe.settings.compute_capability.replace(".", "")
        words.append(f"--with-nvcc-gencode=-gencode=arch=compute_{gpu},code=sm_{gpu}")
    return words
