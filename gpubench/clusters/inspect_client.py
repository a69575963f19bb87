"""A client of a running cluster, in a separate Python, because this tool has no Dask: one question, one answer."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from gpubench import resources
from gpubench.campaign.interrupts import LOOK_S, end_process, interrupts
from gpubench.errors import InterruptedByUserError, MissingToolError, PlanRefusedError, UsageError
from gpubench.files import temporary_directory, write_atomically
from gpubench.images.obtain import kind_of, obtain_images
from gpubench.model.site import Site
from gpubench.node.spec.cluster import InspectRecord
from gpubench.polling import poll_until
from gpubench.render.cluster import WITH_PYTHON
from gpubench.render.node_half import NODE_HALF, pack


def address_in(path: Path) -> str:
    """The scheduler's address in the file that it wrote; raises UsageError."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--scheduler-file {path}: {error.strerror}") from None
    except ValueError:
        plain = None
    address = plain.get("address") if isinstance(plain, dict) else None
    if not isinstance(address, str) or "://" not in address:
        raise UsageError(
            f"--scheduler-file {path} isn't one that a Dask scheduler wrote",
            then="dask scheduler --scheduler-file FILE",
        )
    return address


def named_python(python: Path) -> Path:
    """The Python that the user named; raises UsageError."""
    program = shutil.which(str(python))
    if program is None:
        raise UsageError(f"--python {python} is no program", then="give the path of a Python")
    return Path(program).absolute()


def image_python(site: Site, spec: str) -> tuple[Path, dict[str, str]]:
    """The Python of the site's image of a UCX version, and what the image sets; raises UsageError, PlanRefusedError."""
    kind = kind_of(site)
    if kind not in WITH_PYTHON:
        raise UsageError(f"the Python of an image of kind {kind} can't be started by its path", then="--python PYTHON")
    image = obtain_images(site, [spec])[spec]
    if image is None:
        raise PlanRefusedError(f"no image yet for {spec}", then=f"gpubench images build {spec}, or --python PYTHON")
    return Path(image[0].python), dict(image[0].env)


CONNECT_S = 30.0
STOP_S = 5.0


def ask(address: str, python: Path, env: dict[str, str], answer_s: float = 0.0) -> InspectRecord:
    """What the client found; see ``inspect_cluster.look``.

    Args:
        address: of the scheduler.
        python: that has Dask, in the cluster's version.
        env: of the client, beside this process's own environment.
        answer_s: seconds that a busy worker may take to say where it may run; 0: it isn't asked.

    Raises:
        MissingToolError: the client couldn't be started, or ended without an answer.
        InterruptedByUserError: Ctrl-C or a signal.
    """
    with temporary_directory("inspect") as directory:
        node_half, answer, log = (directory.resolve() / name for name in (NODE_HALF, "record.json", "look.log"))
        write_atomically(node_half, pack(resources.node_half()))
        command = [str(python), "-I", str(node_half), "look", "--address", address, "--record", str(answer)]
        command += ["--connect", str(CONNECT_S), "--answer", str(answer_s), "--parent", str(os.getpid())]
        with interrupts() as interrupted:
            _run(command, env, log, interrupted, 3 * CONNECT_S + answer_s)
        if interrupted:
            raise InterruptedByUserError(f"interrupted by {interrupted[0]}")
        if not answer.exists():
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            message = lines[-1] if lines else "it ended without a message"
            raise MissingToolError(f"{python} couldn't check the cluster: {message.removeprefix('gpubench look: ')}")
        return InspectRecord.parse(answer.read_text(encoding="utf-8"))


def _run(command: list[str], env: dict[str, str], log: Path, interrupted: list[str], limit_s: float) -> None:
    with log.open("wb") as out:
        try:
            process = subprocess.Popen(
                command,
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us
            )
        except OSError as error:
            raise MissingToolError(f"can't start {command[0]}: {error.strerror}") from None
    try:
        poll_until(lambda: process.poll() is not None or interrupted, interval_s=LOOK_S, timeout_s=limit_s)
    finally:
        end_process(process, STOP_S)
