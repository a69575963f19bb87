"""Runtime ``apptainer``: it mounts a squashfs file and runs in it as the caller; no daemon.

https://apptainer.org/docs/user/main/; tried with 1.4.5. Before 1.1 there is no ``--no-eval``. Processes, network,
shared memory, ``/dev`` and ``/tmp`` are the node's; the home directory is not mounted. Apptainer hands signals on to
the program inside, and ends with its exit code.
"""

from collections.abc import Sequence

from gpubench.errors import UsageError
from gpubench.model.image import Image
from gpubench.runtimes.base import Expanded, ImagePlace, Runtime


class Apptainer(Runtime):
    KIND = "squashfs"
    CAN_INTERLEAVE = False
    PROGRAM = "apptainer"
    TEMPLATE = "runtimes/apptainer.sh.j2"
    MOUNT_SEPARATORS = ',:"'  # its lists are CSV

    def prefix(self, place: ImagePlace) -> list[str]:
        """``apptainer exec`` with all that the place decides; the campaign's own files are read-only."""
        return [
            *("bash", "-c", Expanded("$GPUBENCH_APPTAINER"), "gpubench-apptainer", *place.passed, "--"),
            *(Expanded("--bind=$OUTDIR"), Expanded("--bind=$GPUBENCH_CAMPAIGN/jobs:$GPUBENCH_CAMPAIGN/jobs:ro")),
            Expanded("--bind=$GPUBENCH_CAMPAIGN/node.pyz:$GPUBENCH_CAMPAIGN/node.pyz:ro"),
            *(Expanded("--bind=$SCRATCHDIR"), Expanded("--pwd=$PWD")),
            *(f"--bind={_mount(mount)}" for mount in place.mounts),
            *([] if place.device == "cpu" else ["--nv"]),
            *place.options,
        ]

    def command(self, image: Image, arguments: Sequence[str]) -> list[str]:
        """The file, named by its digest, and the Python inside."""
        return [image.reference, image.python, "-I", *arguments]


def _mount(mount: str) -> str:
    host, _, rest = mount.partition(":")
    inside, _, flag = rest.partition(":")
    if not host or not inside or flag not in ("", "ro") or set(mount) & {",", '"'}:
        raise UsageError(
            f"container.mounts: Apptainer can't mount '{mount}'",
            then="write HOST:INSIDE or HOST:INSIDE:ro, without commas or double quotes",
        )
    return mount
