"""What a runtime is: by default one that starts the image's own Python as it is."""

import dataclasses
from collections.abc import Sequence

from gpubench.model.image import Image


class Expanded(str):
    """A word in which the job script's shell puts in variables: ``--volume=$OUTDIR:$OUTDIR`` (only plain ``$NAME``)."""

    __slots__ = ()


@dataclasses.dataclass(frozen=True)
class ImagePlace:
    """Where a container is started.

    The script has set ``$OUTDIR`` (the campaign), ``$SCRATCHDIR`` (node-local) and ``$PWD`` (the job's directory).

    Args:
        options: of the profile, put in as they stand.
        mounts: of the profile, ``HOST:INSIDE[:ro]``.
        passed: names of the variables that the node half reads.
        device: ``cpu``, ``gpu`` or ``auto``.
        hidden: variables that the hooks of container runtimes read, to be ``void``: no devices of that kind.
    """

    options: Sequence[str] = ()
    mounts: Sequence[str] = ()
    passed: Sequence[str] = ()
    device: str = "cpu"
    hidden: Sequence[str] = ()


class Runtime:
    """An adapter between a command and an image; a subclass says what is different from a plain Python.

    Args:
        kind, launchers: in place of ``KIND`` and ``LAUNCHERS``, which a subclass names once for all.
    """

    KIND: str
    LAUNCHERS: tuple[str, ...] = ("fork", "jsrun", "srun", "ssh")
    """Names of the launchers that it goes with."""
    CAN_INTERLEAVE = True
    """Whether a node can have several runs at the same time."""
    PROGRAM = ""
    """Program that must be on ``PATH`` where a job starts an image; empty: none."""
    TEMPLATE = ""
    """Shell that the job script needs before the first run, below ``templates/``; empty: none."""
    DEFINES_LEAVE = False
    """Whether that shell defines ``leave``, which removes what the job left on its nodes."""
    CLEAN_TEMPLATE = ""
    """Shell of ``gpubench sites clean``, below ``templates/``; empty: containers end with what runs in them.

    With ``on_node`` a function ``containers`` that calls ``found`` (``templates/common/left.sh.j2``) for each container
    that no job uses; without, what the job script does before.
    """
    MOUNT_SEPARATORS = ""
    """Characters that separate the words of a mount: a directory whose path holds one can't be mounted."""

    def __init__(self, kind: str = "", launchers: tuple[str, ...] = ()) -> None:
        self.KIND = kind or self.KIND
        self.LAUNCHERS = launchers or self.LAUNCHERS

    def prefix(self, place: ImagePlace) -> list[str]:  # noqa: ARG002 - no container is started
        """The words before every command, the same for all images; empty: none.

        Raises:
            UsageError: the program can't mount what the profile names.
        """
        return []

    def make_ready(self, image: Image) -> list[str]:
        """The arguments of the shell's function ``make_ready`` for an image; empty: it is started as it is.

        A squashfs file is checked.
        """
        return [image.reference] if self.KIND == "squashfs" else []

    def command(self, image: Image, arguments: Sequence[str]) -> list[str]:
        """The words behind ``prefix`` that run ``arguments`` (of Python) in the image.

        ``-I``: what a login shell put on ``PYTHONPATH`` must not be imported.
        """
        return [image.python, "-I", *arguments]
