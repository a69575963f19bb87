"""Import locked container images into squashfs files, by a script that also a person can run."""

import logging
import subprocess
from collections.abc import Sequence
from pathlib import Path

from gpubench import __version__, resources
from gpubench.errors import (
    DataError,
    GpubenchError,
    InterruptedByUserError,
    MissingToolError,
    SchedulerError,
    UsageError,
)
from gpubench.files import write_atomically
from gpubench.images.kinds.base import ImagePaths
from gpubench.images.lock import locked_rows
from gpubench.model.site import Site
from gpubench.model.text import counted
from gpubench.render.importing import PROGRAMS, render_import
from gpubench.render.shell import command_line
from gpubench.resources.profiles import to_type
from gpubench.runtimes import RUNTIMES

_log = logging.getLogger(__name__)

SCRIPT = "import.sh"
_CAUSES: dict[int, type[GpubenchError]] = {
    error.exit_code: error for error in (DataError, MissingToolError, SchedulerError, InterruptedByUserError)
}


def import_images(site: Site, specs: Sequence[str], date: str, out: Path | None) -> None:
    """Write ``import.sh`` for the locked images; unless ``out`` only wants the script, run it as the profile says.

    Raises:
        UsageError: an image that isn't locked, or was never pushed.
        MissingToolError: no enroot or Apptainer where it runs, or the disk is full.
        SchedulerError: the registry refused or failed.
    """
    rows = locked_rows(site, specs, date)
    if not rows:
        registry = [] if site.image.registry else ["--set", "image.registry=HOST/NAME"]
        build = command_line(["gpubench", "images", "build", "--push", *to_type(site.name), *registry])
        raise UsageError(f"images.lock.toml has no image for site {site.name}", then=build)
    for row in rows:
        if not row.registry:
            raise UsageError(
                f"image {row.spec} of {row.date} is in the local engine only",
                then=f"push it: {command_line(['gpubench', 'images', 'push', row.spec, *to_type(row.site)])}",
            )
    folder = ImagePaths.of(site).squashfs
    own = RUNTIMES[site.runtime].PROGRAM
    program = site.imports.program or (own if own in PROGRAMS else "enroot")
    templates = resources.texts("templates", "importing/**/*.j2")
    script = render_import(rows, str(folder), templates, program=program, gpubench=__version__)
    path = (out or Path(site.paths.outputs) / "images" / site.name) / SCRIPT
    write_atomically(path, script)
    command = [*site.imports.launch, "bash", str(path.resolve())]
    if out:
        _log.info(f"{path} imports {counted(len(rows), 'image')} into {folder}")
        return
    try:
        code = subprocess.run(command, check=False).returncode
    except OSError as error:
        raise MissingToolError(
            f"can't start {command[0]}: {error.strerror}; the script is {path}",
            then=f"run it on a machine with {program}: bash {path}",
        ) from None
    if code:
        raise _CAUSES.get(code, SchedulerError)(
            f"{path} ended with exit code {code}; its last lines say why", then="run it again: finished files are kept"
        )
