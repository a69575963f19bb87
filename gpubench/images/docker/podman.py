"""Podman in Docker's place: a service of its own speaks Docker's API (podman-system-service(1))."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator

from gpubench.errors import MissingToolError
from gpubench.files import temporary_directory
from gpubench.images.process import die_with_parent
from gpubench.polling import poll_until

PROGRAM = "podman"
START_S = 60.0


def find_program() -> str:
    """The path of Podman. Raises MissingToolError: it isn't installed."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise MissingToolError("podman, whose engine is to build images, is not installed", then="install it here, too")
    return program


@contextlib.contextmanager
def service() -> Iterator[str]:
    """The address of this user's Podman, ``unix://…``, which answers as long as the block lasts.

    Raises:
        MissingToolError: Podman isn't installed, or doesn't start.
    """
    program = find_program()
    with temporary_directory("podman-service") as folder, (folder / "log").open("w+b") as log:
        socket = folder / "socket"
        command = [program, "system", "service", "--time=0", f"unix://{socket}"]
        with subprocess.Popen(die_with_parent(command), stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process:
            try:
                poll_until(lambda: socket.is_socket() or process.poll() is not None, interval_s=0.05, timeout_s=START_S)
                if not socket.is_socket():
                    raise MissingToolError(
                        f"podman doesn't start ({_last_line((folder / 'log').read_text(errors='replace'))})",
                        then="see what podman info says",
                    )
                yield f"unix://{socket}"
            finally:
                process.terminate()


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it says nothing")
