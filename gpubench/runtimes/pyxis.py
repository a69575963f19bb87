"""Runtime ``pyxis``: options of ``srun`` that start every task inside a squashfs file; needs the launcher ``srun``.

https://github.com/NVIDIA/pyxis/wiki/Usage
"""

from collections.abc import Sequence

from gpubench.model.image import Image
from gpubench.runtimes.base import Expanded, ImagePlace, Runtime


class Pyxis(Runtime):
    KIND = "squashfs"
    LAUNCHERS = ("srun",)
    CAN_INTERLEAVE = False
    PROGRAM = "srun"
    TEMPLATE = "runtimes/pyxis.sh.j2"
    DEFINES_LEAVE = True
    CLEAN_TEMPLATE = "runtimes/pyxis-left.sh.j2"
    MOUNT_SEPARATORS = ",:"

    def prefix(self, place: ImagePlace) -> list[str]:
        """Mounts by the same path inside as outside; the campaign's own files read-only."""
        own = ("$OUTDIR:rw", "$GPUBENCH_CAMPAIGN/jobs:ro", "$GPUBENCH_CAMPAIGN/node.pyz:ro", "$SCRATCHDIR:rw")
        mounts = [f"{path}:{path}:{flag}" for path, _, flag in (mount.rpartition(":") for mount in own)]
        return [
            "--no-container-mount-home",
            "--no-container-entrypoint",
            Expanded("--container-mounts=" + ",".join([*mounts, *place.mounts])),
            Expanded("--container-workdir=$PWD"),
            # Without it the image's own settings win over the job's (same page, --container-env).
            Expanded(f"--container-env={','.join([*place.passed, *place.hidden])}"),
            *([Expanded(f"--export=ALL,{','.join(f'{name}=void' for name in place.hidden)}")] if place.hidden else []),
            *place.options,
        ]

    def make_ready(self, image: Image) -> list[str]:
        """Its file is checked, and a command that does nothing has pyxis unpack it."""
        return [image.reference, *self.command(image, ["-c", "pass"])]

    def command(self, image: Image, arguments: Sequence[str]) -> list[str]:
        """The file, kept as one container for the job's blocks, named by digest and job; then the explicit command."""
        return [
            f"--container-image={image.reference}",
            Expanded(f"--container-name=gpubench-{image.id.rpartition(':')[2][:16]}-$GPUBENCH_CONTAINERS"),
            image.python,
            "-I",
            *arguments,
        ]
