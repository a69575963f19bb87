"""Runtime ``charliecloud``: ``ch-run`` mounts a squashfs file and runs in it as the caller; no daemon, no setuid.

An image is read-only and ``ch-run`` makes no mount points in it, so every directory of the host stands below ``HOST``,
in a private ``/tmp``, by its own path: two campaigns on one node must not look like one to a supervisor that searches
the process table. The template explains why a shell stands around ``ch-run``.
"""

from collections.abc import Sequence

from gpubench.errors import UsageError
from gpubench.model.image import Image
from gpubench.runtimes.base import Expanded, ImagePlace, Runtime

HOST = "/tmp/host"  # noqa: S108 - inside the container, its own /tmp
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Charliecloud(Runtime):
    """See the module."""

    KIND = "squashfs"
    PROGRAM = "ch-run"
    TEMPLATE = "runtimes/charliecloud.sh.j2"
    MOUNT_SEPARATORS = ":"

    def prefix(self, place: ImagePlace) -> list[str]:
        """``ch-run`` with all that the place decides.

        Raises:
            UsageError: a mount is to be read-only, or lacks one of its paths.
        """
        kept = "|".join(["USER", *place.passed])
        return [
            *("bash", "-c", Expanded("$GPUBENCH_CH_RUN"), "charliecloud", "ch-run", "--private-tmp"),
            *(f"--unset-env=!({kept})", f"--set-env=PATH={PATH}", "--env-no-expand"),
            Expanded(f"--set-env=OUTDIR={HOST}$OUTDIR"),
            Expanded(f"--set-env=SCRATCHDIR={HOST}$SCRATCHDIR"),
            Expanded(f"--bind=$GPUBENCH_CAMPAIGN:{HOST}$GPUBENCH_CAMPAIGN"),
            Expanded(f"--bind=$OUTDIR:{HOST}$OUTDIR"),
            Expanded(f"--bind=$SCRATCHDIR:{HOST}$SCRATCHDIR"),
            Expanded(f"--cd={HOST}$PWD"),
            *(f"--bind={_mount(mount)}" for mount in place.mounts),
            *place.options,
        ]

    def command(self, image: Image, words: Sequence[str]) -> list[str]:
        """The squashfs file, named by its digest, and the Python inside."""
        return [image.reference, "--", image.python, "-I", *words]


def _mount(mount: str) -> str:
    parts = mount.split(":")
    if len(parts) != 2 or not all(parts):
        raise UsageError(
            f"container.mounts: Charliecloud can't mount '{mount}'",
            then="write HOST:INSIDE; it has no read-only mounts, and INSIDE must exist in the image",
        )
    return mount
