"""Kind ``conda``: a prefix on a file system that every node sees, named by all that went into it."""

import logging
import subprocess
from pathlib import Path
from typing import Any

from gpubench.errors import DataError, GpubenchError, MissingToolError
from gpubench.images.kinds.base import ImageRequest, Obtained, installed_ready, no_entries, obtain_locked
from gpubench.images.manifests import prefix_image, read_manifest
from gpubench.images.process import started, without_logins
from gpubench.model.image import manifest_id
from gpubench.model.images_lock import LockRow
from gpubench.model.recipe import Recipe
from gpubench.render.conda import SCRIPT, Prefix

_log = logging.getLogger(__name__)

_CAUSES: dict[int, type[GpubenchError]] = {3: DataError, 5: MissingToolError}
_STEP = "== "

ON_DEMAND = False
entries = no_entries
ready = installed_ready


def make_prefix(recipe: Recipe, prefix: Prefix, folder: Path, root: Path) -> LockRow:
    """Run the script of ``folder``, with a log below ``root`` (``paths.images``); the row has no date yet.

    Raises:
        MissingToolError: no conda here, another architecture, a channel that doesn't answer, a full disk.
        DataError: what was made isn't what the recipe says.
    """
    log = root / "logs" / f"conda-{recipe.spec.replace('/', '_')}.log"
    message, code = _run_script(folder / SCRIPT, log, recipe.spec)
    if code:
        raise _failure(message, code, folder / SCRIPT, log, prefix)
    path = Path(prefix.path) / "gpubench" / "manifest.json"
    try:
        return _row(recipe, prefix, read_manifest(path.read_bytes(), str(path)))
    except OSError as error:
        raise DataError(f"can't read {path}: {error.strerror}", then=f"rm -r {prefix.path}, and build again") from None


def _failure(message: str, code: int, script: Path, log: Path, prefix: Prefix) -> GpubenchError:
    """One line; the script's own words only where it is the script that refused."""
    kind = _CAUSES.get(code)
    what = message if kind else f"conda prefix {prefix.path} couldn't be made ({message})"
    then = f"see {log}, then run it again"
    if kind is MissingToolError:
        home = Path(prefix.path).parent
        then = f"run it on a machine with conda that sees {home}: bash {script}; then this command again"
    return (kind or MissingToolError)(f"{what}; {script.name} written to {script.parent}", then=then)


def _row(recipe: Recipe, prefix: Prefix, document: dict[str, Any]) -> LockRow:
    return LockRow(
        kind="conda",
        spec=recipe.spec,
        site=recipe.site,
        date="",
        digest=manifest_id(document),
        build_id=document["build_id"],
        ucx_version=document["ucx"]["version"],
        ucx_commit=recipe.ucx_commit,
        binding=recipe.binding,
        stack=recipe.stack,
        python=f"{prefix.path}/bin/python",
        env=document["env"],
        architecture=recipe.settings.architecture,
        document=document,
    )


def _run_script(script: Path, log: Path, spec: str) -> tuple[str, int]:
    """The last line of its output without our name in front, and the exit code; ``log`` gets all of it."""
    last = ""
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("w", encoding="utf-8") as file,
        started(["bash", str(script.resolve())], stdin=subprocess.DEVNULL) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            shown = without_logins(line)
            file.write(shown)
            file.flush()
            if shown.startswith(_STEP):
                _log.info(f"{spec}: {shown.removeprefix(_STEP).strip()}")
            elif shown.strip():
                last = shown.strip()
    return last.removeprefix("gpubench: "), process.returncode


def obtain(request: ImageRequest) -> Obtained:
    """What ``images build`` has locked; a prefix takes too long to make it by the way."""
    return obtain_locked(request, "conda", prefix_image)
