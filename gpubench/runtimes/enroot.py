"""Runtime ``enroot``: squashfs files, no plugin of the scheduler; ``enroot`` unpacks one and starts commands in it.

https://github.com/NVIDIA/enroot/tree/master/doc/cmd. The template's shell stands around every command: it creates the
container once per node, keeps others from removing it meanwhile, and hands on signals.
"""

from collections.abc import Sequence

from gpubench.errors import UsageError
from gpubench.model.image import Image
from gpubench.runtimes.base import Expanded, ImagePlace, Runtime

BIND = "none:x-create=auto,rbind"
_ESCAPES = str.maketrans({"\\": "\\134", " ": "\\040", "\t": "\\011", "\n": "\\012"})
"""As in fstab(5)."""


class Enroot(Runtime):
    KIND = "squashfs"
    LAUNCHERS = ("fork", "srun")
    CAN_INTERLEAVE = False
    PROGRAM = "enroot"
    TEMPLATE = "runtimes/enroot.sh.j2"
    DEFINES_LEAVE = True
    CLEAN_TEMPLATE = "runtimes/enroot-left.sh.j2"
    MOUNT_SEPARATORS = ":"

    def prefix(self, place: ImagePlace) -> list[str]:
        """Options of ``enroot start``: mounts by one path inside and outside; the campaign's own files read-only."""
        return [
            *("bash", "-c", Expanded("$GPUBENCH_ENROOT"), "gpubench-enroot"),
            *(_same("$GPUBENCH_OUTDIR_MOUNT"), _same("$GPUBENCH_CAMPAIGN_MOUNT/jobs", read_only=True)),
            *(_same("$GPUBENCH_CAMPAIGN_MOUNT/node.pyz", read_only=True), _same("$GPUBENCH_SCRATCHDIR_MOUNT")),
            *(f"--mount={_mount(mount)}" for mount in place.mounts),
            # Without it the image's own settings win over the job's. The shell leaves out unset variables: enroot would
            # set them to nothing.
            *(f"--env={name}" for name in place.passed),
            *(f"--env={name}=void" for name in place.hidden),
            *place.options,
        ]

    def command(self, image: Image, arguments: Sequence[str]) -> list[str]:
        """The file, the name of its container, and the explicit command."""
        name = f"gpubench-{image.id.rpartition(':')[2][:16]}"
        return ["--", image.reference, name, image.python, "-I", *arguments]


def _same(path: str, *, read_only: bool = False) -> Expanded:
    return Expanded(f"--mount={path}:{path}:{BIND}{',ro' if read_only else ''}")


def _mount(mount: str) -> str:
    host, _, rest = mount.translate(_ESCAPES).partition(":")
    inside, _, flag = rest.partition(":")
    if not host or not inside or flag not in ("", "ro"):
        raise UsageError(f"container.mounts: enroot can't mount '{mount}'", then="write HOST:INSIDE or HOST:INSIDE:ro")
    return f"{host}:{inside}:{BIND}{',ro' if flag else ''}"
