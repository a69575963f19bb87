"""``gpubench images prune``: what nobody needs any more."""

from __future__ import annotations

from pathlib import Path

from gpubench.cli.images.lock import read_lock
from gpubench.cli.say import say
from gpubench.images.kinds import KINDS
from gpubench.images.kinds.base import ImagePaths, Leftover, Needed
from gpubench.model.image import Image
from gpubench.model.quantities import format_bytes
from gpubench.model.site import Site
from gpubench.store.campaign import PLAN_FILE, Campaign


def prune(site: Site, outputs: Path | None, *, remove: bool) -> None:
    """List, and with ``remove`` delete, what neither the lock nor any campaign below ``outputs`` names."""
    folder = outputs or Path(site.paths.outputs)
    needed = Needed(rows=tuple(read_lock().image), images=_in_campaigns(folder))
    found: list[Leftover] = [one for kind in KINDS.values() for one in kind.leftovers(ImagePaths.of(site), needed)]
    for one in found:
        if remove:
            one.remove()
        say(f"{'removed' if remove else 'unused'}  {one.what}  {format_bytes(one.size) if one.size else ''}".rstrip())
    total = sum(one.size for one in found)
    if not found:
        say("nothing to remove")
    elif not remove:
        say(
            f"{len(found)} things, {format_bytes(total)}, that neither images.lock.toml nor a campaign in {folder} "
            "names; to remove them: the same with --yes"
        )


def _in_campaigns(outputs: Path) -> tuple[Image, ...]:
    plans = [Campaign.open(path.parent).plan for path in sorted(outputs.glob(f"*/{PLAN_FILE}"))]
    return tuple(variant.image for plan in plans for variant in plan.variants if variant.image)
