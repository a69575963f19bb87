"""Programs that build images, uv among them: none outlives gpubench, their output is kept, logins in it are not."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import uv

from gpubench.errors import BuildError, GpubenchError, MissingToolError
from gpubench.model.quantities import format_seconds

_LOGIN = re.compile(r"(?<=//)[^/@\s]+@")
# PR_SET_PDEATHSIG (prctl(2)): a killed gpubench leaves nothing behind that goes on fetching.
_DIE_WITH_PARENT = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.execv(sys.argv[1], sys.argv[1:])"

# The same for a program that starts others: it is the leader of the group (``started``), and takes all of it with it.
_GROUP_DIES_WITH_PARENT = """\
import ctypes, os, signal, subprocess, sys
signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
code = subprocess.call(sys.argv[1:], close_fds=False)
sys.exit(code if code >= 0 else 128 - code)
"""


def without_logins(text: str) -> str:
    """The text without the ``USER:PASSWORD@`` of its addresses."""
    return _LOGIN.sub("", text)


def die_with_parent(command: Sequence[str], *, starts_others: bool = False) -> list[str]:
    """The command line of a program that is killed when the thread that starts it ends, maybe with all it started."""
    program = _GROUP_DIES_WITH_PARENT if starts_others else _DIE_WITH_PARENT
    return [sys.executable, "-I", "-S", "-c", program, *command]


def kill_group(process: subprocess.Popen[str]) -> None:
    """Kill a program of ``started`` and whatever it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A program whose output, errors too, is ``stdout``; it is killed with all that it started if the block raises."""
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        **options,
    ) as process:
        try:
            yield process
        except BaseException:
            kill_group(process)
            raise


DEADLINE_S = 1800.0
"""A stack is 0.4 GB to fetch: half an hour is 0.25 MB/s."""

WHEELS_ONLY = ("--require-hashes", "--only-binary", ":all:")
"""Nothing is built, and nothing installed that the lock doesn't name by its hash."""

# Of the user's settings only those stay that say where packages come from and how they are fetched.
_FOREIGN = re.compile(
    r"UV_(PYTHON|SYSTEM_PYTHON|BREAK_SYSTEM_PACKAGES|OVERRIDE|CONSTRAINT|BUILD_CONSTRAINT|EXCLUDE|EXCLUDE_NEWER|PRERELEASE"
    r"|RESOLUTION|TARGET|PREFIX|LINK_MODE|COMPILE_BYTECODE|PROJECT|WORKING_DIR(ECTORY)?|VENV_\w+|NO_BINARY\w*|LOG_\w+)"
    r"|PYTHON\w*|VIRTUAL_ENV|CONDA_PREFIX|RUST_LOG"
)
_SETTINGS = {
    # Files of our own, sharing blocks where the file system can (copy_file_range). With "clone", uv falls back to hard
    # links into its cache, and whoever edits a file of another environment in place would change images.
    "UV_LINK_MODE": "copy",
    # Bytecode that Python never rewrites: start-up is the same in the first run and in the last.
    "PYC_INVALIDATION_MODE": "UNCHECKED_HASH",
    "UV_PYTHON_DOWNLOADS": "never",
    "UV_NO_PROGRESS": "1",
    "NO_COLOR": "1",
}
# Seconds of silence and further attempts: an index that accepts and never answers costs less than a minute.
_DEFAULTS = {"UV_HTTP_TIMEOUT": "15", "UV_HTTP_RETRIES": "2"}
_FULL = re.compile(r"no space left[^\n]*|[^\n]*quota exceeded[^\n]*", re.IGNORECASE)
_CAUSE = re.compile(r"^\s*(?:error|cause|Caused by|×)(?::| )\s*(.+)$", re.MULTILINE)
_INDEX_SILENT = ("error sending request", "failed to fetch", "request failed", "timed out", "connection", "dns error")
_UNTOUCHED = "finished images are untouched"


def environment(shell: Mapping[str, str]) -> dict[str, str]:
    """The environment in which uv runs: the shell's index, proxy and cache settings, and ours for the rest."""
    kept = {key: value for key, value in shell.items() if not _FOREIGN.fullmatch(key)}
    return {**_DEFAULTS, **kept, **_SETTINGS}


def program() -> str:
    """The path of uv. Raises MissingToolError: it isn't installed beside gpubench."""
    try:
        return uv.find_uv_bin()
    except FileNotFoundError:
        raise MissingToolError(
            "uv, which builds images, is not installed", then="install gpubench again, which brings it"
        ) from None


def run_logged(
    command: Sequence[str],
    *,
    folder: Path,
    env: Mapping[str, str],
    log: Path,
    hold: int,
    deadline_s: float,
    text: str = "",
    starts_others: bool = False,
) -> tuple[int | None, str]:
    """Run a program in ``folder`` with ``text`` as its standard input; its exit code (None: it was killed) and output.

    Args:
        log: gets everything that was printed.
        hold: the builder's lock. The program keeps it open, so that nobody clears its folder while it still writes: a
            killed process frees its locks before its children are told.
        starts_others: whether what the program starts must die with gpubench, too.
    """
    late = False
    wrapped = die_with_parent(command, starts_others=starts_others)
    with started(wrapped, cwd=folder, env=env, stdin=subprocess.PIPE, pass_fds=(hold,)) as process:
        try:
            output, _ = process.communicate(text, timeout=deadline_s)
        except subprocess.TimeoutExpired:
            late = True
            kill_group(process)
            output, _ = process.communicate()
    output = without_logins(output)
    with contextlib.suppress(OSError):  # a disk that is full is reported by what failed, not by its log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as file:
            file.write(f"$ {' '.join(command)}\n{output}\n")
    return None if late else process.returncode, output


def run_uv(arguments: Sequence[str], *, what: str, folder: Path, log: Path, hold: int, text: str = "") -> None:
    """Run ``uv WORDS`` as ``run_logged`` does; ``what`` names the aim in messages.

    Raises:
        MissingToolError: uv failed, or didn't end within DEADLINE_S seconds.
    """
    code, output = run_logged(
        [program(), *arguments],
        folder=folder,  # uv reads the settings of a project that it finds around its working directory
        env=environment(os.environ),
        log=log,
        hold=hold,
        deadline_s=DEADLINE_S,
        text=text,
    )
    if code is None:
        raise MissingToolError(
            f"could not install {what} within {format_seconds(DEADLINE_S)}; {_UNTOUCHED}",
            then=f"run it again, what was fetched is kept; log: {log}",
        )
    if code < 0:
        raise MissingToolError(
            f"uv was killed (signal {-code}): could not install {what}; {_UNTOUCHED}", then=f"run it again; log: {log}"
        )
    if code:
        raise failure(what, output, log)


def failure(what: str, output: str, log: Path) -> GpubenchError:
    """One line from what uv printed."""
    causes = _CAUSE.findall(output)
    cause = causes[-1].rstrip(".") if causes else "uv gave no reason"
    lowered = output.lower()
    if full := _FULL.search(output):
        cause = full[0].strip()  # uv breaks the line that says it: the last cause may be its first half only
        return MissingToolError(
            f"the disk is full: could not install {what} ({cause}); {_UNTOUCHED}",
            then=f"free some space (a stack takes up to 1.1 GB, a UCX version 0.15 GB) and run it again; log: {log}",
        )
    if any(sign in lowered for sign in _INDEX_SILENT):
        return MissingToolError(
            f"the package index doesn't answer or refuses: could not install {what} ({cause}); {_UNTOUCHED}",
            then=f"check the network, proxy and index settings of uv and run it again; log: {log}",
        )
    return BuildError(f"could not install {what} ({cause}); {_UNTOUCHED}", then=f"see the log: {log}")
