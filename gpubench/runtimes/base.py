"""What every runtime adapter is given, and how a word may hold variables of the job script."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

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


class Runtime(Protocol):
    """An adapter between a command and an image."""

    @property
    def KIND(self) -> str:  # noqa: N802 - a module's constant
        """Kind of the images that it starts."""

    @property
    def PROGRAM(self) -> str:  # noqa: N802
        """Program that must be on ``PATH`` where a job starts an image; empty: none."""

    @property
    def TEMPLATE(self) -> str:  # noqa: N802
        """Shell that the job script needs before the first run, below ``templates/``; empty: none."""

    @property
    def LEAVES(self) -> bool:  # noqa: N802
        """Whether that shell defines ``leave``, which takes away what the job left on its nodes."""

    @property
    def LEFT(self) -> str:  # noqa: N802
        """Shell of ``gpubench sites clean``, below ``templates/``; empty: containers end with what runs in them.

        With ``on_node`` a function ``containers`` that calls ``found`` (``templates/common/left.sh.j2``) for each
        container that no job uses; without, what the job script does before.
        """

    @property
    def PARTS_AT(self) -> str:  # noqa: N802
        """Characters at which it parts the words of a mount: a directory whose path holds one can't be mounted."""

    def prefix(self, place: ImagePlace) -> list[str]:
        """The words before every command, the same for all images; empty: none."""

    def make_ready(self, image: Image) -> list[str]:
        """The arguments of the shell's function ``make_ready`` for an image; empty: it is started as it is."""

    def command(self, image: Image, words: Sequence[str]) -> list[str]:
        """The words behind ``prefix`` that run ``words`` (arguments of Python) in the image."""
