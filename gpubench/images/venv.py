"""Images of kind ``venv``: one Python stack for all, and one folder of libucx per UCX version.

Below ``paths.images`` (default: the user's cache directory) lie, side by side::

    venv/ucxx-0.45.1-py3.11.7-<key>/files/bin/python       a stack: Python packages, no UCX
    venv/ucx-1.19.0-<key>/files/libucx/lib/libucp.so.0     one UCX version, shared by all stacks

``<key>`` is the hash of what goes in: the lock's bytes, the wheel's SHA-256, the Python version. Every input is pinned
by its own hash, so one key means one content; the content's hash is measured after the build (see ``folders``) and is
the image's id. A folder never changes once it has its name: a campaign's image stays as it was when others are built.

No venv can be moved whole (its scripts name their Python by path), but ``bin/python`` finds its packages through
``pyvenv.cfg`` beside it, wherever it lies: that is all that is ever used, so building elsewhere and renaming is safe.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from gpubench.errors import DataError, MissingToolError
from gpubench.images.build_mutex import Progress
from gpubench.images.compatibility import Stack
from gpubench.images.folders import Folder, read_sound
from gpubench.images.libucx import ucx_folder, ucx_name
from gpubench.images.specs import Wheel
from gpubench.images.stack import stack_folder, stack_name
from gpubench.spec.plain import content_id


@dataclasses.dataclass(frozen=True)
class BuiltVenv:
    """An image: a row of the table and a wheel, and the two folders that hold them."""

    row: Stack
    wheel: Wheel
    stack: Folder
    ucx: Folder

    @property
    def python(self) -> Path:
        """Starts the node half."""
        return self.stack.files / "bin" / "python"

    @property
    def libraries(self) -> Path:
        """The folder of libucp."""
        return self.ucx.files / "libucx" / "lib"


def image_id(stack: Folder, ucx: Folder) -> str:
    """The same id is the same content."""
    return content_id({"stack": stack.content, "ucx": ucx.content})


def build(row: Stack, wheels: Sequence[Wheel], root: Path, progress: Progress) -> list[BuiltVenv]:
    """One image per wheel, all on one stack; folders that are there already are checked, missing and damaged
    ones built.

    ``root`` is ``paths.images``; ``progress`` gets one line per step. Safe to call from several processes at once.

    Raises:
        MissingToolError: the index doesn't answer, the disk is full, no fitting Python.
        UsageError: ``root`` can't be written.
        DataError: a wheel doesn't hold the UCX that its name says.
        PlanRefusedError: no wheel for this machine.
    """
    home = root.resolve() / "venv"
    for wheel in wheels:
        wheel.digest()  # a machine without wheels is refused before a stack is fetched
    stack = stack_folder(row, home, progress)
    python = stack.files / "bin" / "python"
    return [BuiltVenv(row, wheel, stack, ucx_folder(wheel, python, home, progress)) for wheel in wheels]


def there(row: Stack, wheel: Wheel, root: Path) -> BuiltVenv | None:
    """The image if it is built and sound; raises PlanRefusedError where this machine has no wheel."""
    home = root.resolve() / "venv"
    try:
        return BuiltVenv(row, wheel, read_sound(home / stack_name(row)), read_sound(home / ucx_name(wheel)))
    except (DataError, MissingToolError):  # the build says which of them
        return None
