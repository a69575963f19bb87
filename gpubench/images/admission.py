"""Which rows of the compatibility table may run on a site, and what to say where none may."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.errors import PlanRefusedError
from gpubench.images.compatibility import Stack, nearest_release, newest_cuda, stacks
from gpubench.images.specs import RequestedUcx, releases, version_key
from gpubench.model.site import Site


def admitted(rows: Sequence[Stack], site: Site) -> list[Stack]:
    """The rows whose packages run on the site's nodes, in the table's order."""
    return [row for row in rows if not objection(row, site)]


def objection(row: Stack, site: Site) -> str:
    """Why a row's packages don't run on the site's nodes; empty: they do."""
    image = site.image
    if image.architecture not in row.architectures:
        return f"there are no packages for {image.architecture}, only for {' and '.join(row.architectures)}"
    gpu, driver = image.compute_capability, newest_cuda(image.cuda, image.compute_capability)
    if gpu and row.compute_capability and version_key(gpu) < version_key(row.compute_capability):
        return f"RAPIDS {row.rapids} needs compute capability {row.compute_capability}, the GPUs have {gpu}"
    if driver and row.cuda and version_key(driver) < version_key(row.cuda.min):
        return f"it needs CUDA {row.cuda.min}, driver and GPUs run {driver} at most"
    return ""


def runs(row: Stack, asked: RequestedUcx) -> bool:
    """Whether the row can carry what a spec asks for; a UCX without a number is tried where the row says so."""
    if asked.kind == "none":
        return True
    if row.ucx is None:
        return False
    if asked.kind == "distribution":
        return row.packages == "wheels"  # a distribution's UCX comes without what a binding is compiled against
    if not asked.release:
        return row.ucx.unreleased
    return row.ucx.holds(asked.release)


def refusal(
    spec: str, asked: RequestedUcx, rows: Sequence[Stack], candidates: Sequence[Stack], site: Site
) -> PlanRefusedError:
    """Says why no row will do, and the nearest that would."""
    reasons = [f"stack {row.name}: {objection(row, site) or _range(row)}" for row in rows]
    what = f"no stack can run UCX '{spec}' on site {site.name} ({'; '.join(reasons)})"
    if not candidates:
        others = admitted(stacks(), site)
        if others:
            return PlanRefusedError(what, then=f"nearest: stack {others[0].name} ({_range(others[0])})")
        return PlanRefusedError(what, then="use the site's own software: an image of kind modules or conda")
    bound = [row for row in candidates if row.ucx]
    if not bound:
        return PlanRefusedError(what, then="nearest: none, which runs protocol tcp")
    near = nearest_release(asked.release or releases()[-1], bound)
    row = next(row for row in bound if row.runs(near))
    return PlanRefusedError(what, then=f"nearest: {near} (stack {row.name})")


def _range(row: Stack) -> str:
    return f"runs UCX {row.ucx}" if row.ucx else "has no binding for UCX"
