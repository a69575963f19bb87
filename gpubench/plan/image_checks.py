"""Checks of what a profile says about images that are built for it. Pure."""

import re
from collections.abc import Iterator

from gpubench.model.site import ImageSettings, Site
from gpubench.plan.check_result import CheckResult

CONTAINERS = ("docker", "squashfs")
BUILT = (*CONTAINERS, "conda")
"""Kinds of images for which UCX is built or chosen by the profile."""
_NO_CUDA = frozenset(("debian", "ubuntu", "rockylinux", "almalinux", "centos", "fedora"))
"""Distributions' own images."""
OVER_VERBS = ("dc", "rc", "ud")
"""How UCX's transports over InfiniBand and RoCE begin."""


def check_image(site: Site, kind: str) -> Iterator[CheckResult]:
    """All checks of the profile's section ``image`` for images of that kind."""
    if kind in BUILT:
        yield from _gpus(site, kind)
        yield from _fabric(site)
    if kind in CONTAINERS:
        yield from _base(site.image)


def _gpus(site: Site, kind: str) -> Iterator[CheckResult]:
    """Without these keys an image has no CUDA, and GPU workers can't use their GPUs."""
    image = site.image
    lacks = {"cuda": not image.cuda, "compute_capability": not image.compute_capability}
    lacks["base"] = kind in CONTAINERS and image.base in ("", ImageSettings().base)
    missing = [f"image.{key}" for key, lacking in lacks.items() if lacking]
    if site.device == "gpu" or (site.device == "auto" and site.node.gpus):
        have = f"{', '.join(missing)} {'isn' if len(missing) == 1 else 'aren'}'t set" if missing else "images have CUDA"
        used = "device = gpu" if site.device == "gpu" else f"node.gpus = {site.node.gpus}"
        yield CheckResult(not missing, f"{used}, and {have}")


def _fabric(site: Site) -> Iterator[CheckResult]:
    """Whether UCX is built with what the network of the profile needs: wheels come without verbs."""
    seen = _infiniband(site)
    transports = [transport.strip() for transport in site.env.get("UCX_TLS", "all").split(",")]
    named = [transport.lstrip("^") for transport in transports]
    over_it = any(transport in ("all", "ib") or transport.startswith(OVER_VERBS) for transport in named)
    if transports[0].startswith("^"):
        over_it = "ib" not in named and not set(OVER_VERBS) <= {transport.partition("_")[0] for transport in named}
    if site.protocol != "ucx" or site.image.fabric or not seen or not over_it:
        return
    remedy = 'image.fabric = ["rdmacm", "verbs"], or env.UCX_TLS without it if UCX is to run over TCP'
    yield CheckResult(False, f"{seen} is InfiniBand or RoCE, and image.fabric is empty, so UCX can't use it: {remedy}")


def _infiniband(site: Site) -> str:
    """The value that names InfiniBand or RoCE; empty where none does."""
    if re.match(r"ib[ps]?\d|roce", site.interface):
        return f"interface {site.interface}"
    devices = [name.strip() for name in site.env.get("UCX_NET_DEVICES", "").split(",")]
    device = next((name for name in devices if re.match(r"mlx[45]_|bnxt_re|irdma", name)), "")
    if device:
        return f"env.UCX_NET_DEVICES {device}"
    named = {"expect_transport": site.expect_transport, "need_transport": site.need_transport.between_nodes}
    nics = [f"{key} {name}" for key, names in named.items() for name in names if name.startswith(OVER_VERBS)]
    return nics[0] if nics else ""


def _base(image: ImageSettings) -> Iterator[CheckResult]:
    """Whether the base has the CUDA that the profile names; unknown for a base with a name of its own."""
    base, cuda = image.base, image.cuda
    name, _, tag = base.rpartition(":")
    if not cuda:
        return
    if name.rpartition("/")[2] in _NO_CUDA:
        yield CheckResult(
            False, f"image.cuda = {cuda}, and image.base {base} has no CUDA: take one that has, like nvidia/cuda"
        )
    elif name.endswith("nvidia/cuda"):
        has = re.match(r"\d+\.\d+", tag)
        fits = has is not None and _release(has[0]) <= _release(cuda)
        yield CheckResult(fits, f"image.base {base} {'has' if fits else 'is newer than'} image.cuda = {cuda}")
    else:
        yield CheckResult(None, f"image.cuda = {cuda}: whether image.base {base} has it")


def _release(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text))
