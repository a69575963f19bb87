"""Runtime ``docker``: one container per supervisor, which sees the node as a process of the host would.

Network, process ids and shared memory are the host's: what is measured is UCX on this node, not a bridge; and
supervisors find what an earlier run left behind. The container runs as the caller, so that no file of root's lands in
the campaign. Standard input stays attached: its end is how a killed front end ends the job.
"""

from collections.abc import Sequence

from gpubench.model.image import Image
from gpubench.runtimes.base import Expanded, ImagePlace, Runtime


class Docker(Runtime):
    KIND = "docker"
    LAUNCHERS = ("fork",)
    PROGRAM = "docker"
    TEMPLATE = "runtimes/docker.sh.j2"
    MOUNT_SEPARATORS = ":"

    def prefix(self, place: ImagePlace) -> list[str]:
        """``docker run`` with all that the place decides."""
        return [
            *("docker", "run", "--rm", "--interactive", "--pull=never"),
            # The users too: an engine that remaps them (userns-remap) refuses the others otherwise.
            *("--network=host", "--pid=host", "--ipc=host", "--userns=host"),
            Expanded("--user=$GPUBENCH_USER"),
            Expanded("--volume=$OUTDIR:$OUTDIR"),
            # Where the script is; OUTDIR may be elsewhere. Read-only: no run may change what the next one reads.
            Expanded("--volume=$GPUBENCH_CAMPAIGN/jobs:$GPUBENCH_CAMPAIGN/jobs:ro"),
            Expanded("--volume=$GPUBENCH_CAMPAIGN/node.pyz:$GPUBENCH_CAMPAIGN/node.pyz:ro"),
            Expanded("--volume=$SCRATCHDIR:$SCRATCHDIR"),
            Expanded("--workdir=$PWD"),
            *(f"--volume={mount}" for mount in place.mounts),
            *(f"--env={name}" for name in place.passed),
            *(f"--env={name}=void" for name in place.hidden),
            *(() if place.device == "cpu" else ("--gpus=all",)),
            *place.options,
        ]

    def command(self, image: Image, arguments: Sequence[str]) -> list[str]:
        """The image by its digest: a tag that moved since the plan changes nothing."""
        return ["--entrypoint", image.python, image.reference, "-I", *arguments]
