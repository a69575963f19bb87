"""A client of a running cluster, in a separate Python, because this tool has no Dask: one question, one answer."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

from gpubench import resources
from gpubench.campaign.interrupts import LOOK_S, end_process, interrupts
from gpubench.errors import DataError, InterruptedByUserError, MissingToolError, PlanRefusedError, UsageError
from gpubench.files import write_atomically
from gpubench.images.obtain import kind_of, obtain_images
from gpubench.model.site import Site
from gpubench.node.spec.inspect_record import INSPECT_FILE, InspectRecord, InspectSpec
from gpubench.node.spec.plain import SpecError
from gpubench.polling import poll_until
from gpubench.render.cluster import WITH_PYTHON
from gpubench.render.node_half import pack


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
    found = shutil.which(str(python))
    if found is None:
        raise UsageError(f"--python {python} is no program", then="give the path of a Python")
    return Path(found).absolute()


def image_python(site: Site, spec: str) -> tuple[Path, dict[str, str]]:
    """The Python of the site's image of a UCX version, and what the image sets; raises UsageError, PlanRefusedError."""
    kind = kind_of(site)
    if kind not in WITH_PYTHON:
        raise UsageError(f"the Python of an image of kind {kind} can't be started by its path", then="--python PYTHON")
    image = obtain_images(site, [spec])[spec]
    if image is None:
        raise PlanRefusedError(f"no image yet for {spec}", then=f"gpubench images build {spec}, or --python PYTHON")
    return Path(image[0].python), dict(image[0].env)


STOP_S = 60.0
"""From the signal to the end of the client, which takes away what it brought first."""
NODE_HALF = "node.pyz"


@dataclasses.dataclass(frozen=True)
class SubprocessClient:
    """The client's process; its input and output are in ``directory``.

    Args:
        python: that has Dask, in the cluster's version.
        env: of the client, beside this process's own environment.
    """

    directory: Path
    python: Path
    env: dict[str, str]

    def ask(self, question: InspectSpec, limit_s: float) -> InspectRecord:
        """What the client found.

        Raises:
            MissingToolError: the client couldn't be started, or ended without an answer.
            DataError: the answer can't be read.
            InterruptedByUserError: Ctrl-C or a signal; says whether something may be left on the cluster.
        """
        node_half, spec, answered = (self.directory / name for name in (NODE_HALF, "look.json", INSPECT_FILE))
        write_atomically(node_half, pack(resources.node_half()))
        write_atomically(spec, question.dump())
        command = [str(self.python), "-I", str(node_half.resolve()), "look"]
        command += ["--spec", str(spec.resolve()), "--parent", str(os.getpid())]
        with interrupts() as interrupted, self._log.open("ab") as log:
            code = self._wait(command, log, interrupted, limit_s)
        if interrupted and code == -signal.SIGKILL:
            raise InterruptedByUserError(
                f"interrupted by {interrupted[0]}; the client did not end within {STOP_S:g} s and was killed: "
                "the workers may still have its code and data",
                then="restart the workers before you measure again",
            )
        if interrupted:
            raise InterruptedByUserError(f"interrupted by {interrupted[0]}; nothing is left on the cluster")
        try:
            return InspectRecord.parse(answered.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise MissingToolError(self._last_words()) from None
        except (OSError, SpecError) as error:
            raise DataError(f"{answered}: {error}") from None

    @property
    def _log(self) -> Path:
        return self.directory / "look.log"

    def _wait(self, command: list[str], log: Any, interrupted: list[str], limit_s: float) -> int:
        """The client's exit code."""
        try:
            process = subprocess.Popen(
                command,
                env={**os.environ, **self.env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us
            )
        except OSError as error:
            raise MissingToolError(f"can't start {self.python}: {error.strerror}") from None
        try:
            poll_until(lambda: process.poll() is not None or interrupted, interval_s=LOOK_S, timeout_s=limit_s)
        finally:
            end_process(process, STOP_S)
        return process.returncode

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        said = lines[-1] if lines else "it ended without a message"
        return f"{self.python} couldn't check the cluster: {said.removeprefix('gpubench look: ')}"
