"""Kind ``modules``: software that the site itself installs; the image is what loading it was found to bring."""

import functools
import hashlib
import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpubench.errors import DataError, GpubenchError, MissingToolError
from gpubench.files import write_atomically
from gpubench.images.kinds.base import ImageRequest, Obtained, installed_ready, no_entries, obtain_locked
from gpubench.images.manifests import modules_folder, modules_image, read_manifest
from gpubench.images.ucx_specs import parse
from gpubench.model.image import manifest_id
from gpubench.model.images_lock import LockRow
from gpubench.model.site import Site
from gpubench.node.spec.plain import content_id
from gpubench.render.conda import LOAD_SCRIPT
from gpubench.render.ucx import BINDING_ENV, dump
from gpubench.resources import docker_file
from gpubench.runtimes.modules import LOAD

DESCRIBE = "describe.py"
DEADLINE_S = 300.0
"""Loading modules and importing a binding take seconds, on a busy shared file system a minute."""

# What the module command needs. All else that a shell holds is the user's: an image is the same for everybody.
_KEPT = re.compile(r"HOME|USER|LOGNAME|MODULE(PATH|SHOME)|MODULES_CMD|LMOD_\w+|BASH_ENV|BASH_FUNC_.*")
_BOOKKEEPING = re.compile(
    r"_|SHLVL|PWD|OLDPWD|LOADEDMODULES\w*|_LMFILES_\w*|__?ModuleTable\w*|__\w+|MODULES?_?\w*|FPATH|ENV|" + _KEPT.pattern
)
_PATH = "/usr/local/bin:/usr/bin:/bin"
_CAUSES: dict[int, type[GpubenchError]] = {1: DataError, 3: DataError, 5: MissingToolError}
_BINDINGS = re.compile(r"(ucxx|ucx-py)(-cu\d+)?")
_SCHEMES = {"ucxx": "ucxx", "ucx-py": "ucx", "none": "tcp"}
_ASK = (
    "import importlib.metadata as m, json, sys; "
    "print(json.dumps([sys.executable, [[(d.metadata['Name'] or '').lower(), d.version] for d in m.distributions()]]))"
)

ON_DEMAND = False
entries = no_entries
ready = installed_ready


def describe_modules(spec: str, site: Site, load: Path, root: Path) -> LockRow:
    """Load what ``load`` says, ask it, and keep load lines and manifest below ``root``; the row has no date yet.

    Raises:
        MissingToolError: no ``module`` command here, or no end of it.
        DataError: a module can't be loaded, or what is there isn't the UCX that ``spec`` names.
    """
    loaded = _loaded(load)
    python, packages = json.loads(_bash(load, ["python3", "-I", "-c", _ASK]))
    env = {**BINDING_ENV, **loaded}
    facts = _facts(spec, load, env, packages)
    text = docker_file(f"context/{DESCRIBE}").read_bytes()
    build_id = content_id({"facts": facts, "python": python, "describe": hashlib.sha256(text).hexdigest()})
    row = LockRow(
        kind="modules",
        spec=spec,
        site=site.name,
        date="",
        digest="",
        build_id=build_id,
        ucx_version="",
        binding=facts["binding"]["name"],
        stack="modules",
        python=python,
        env=env,
        architecture=platform.machine(),
        document={},
    )
    folder = modules_folder(root, row)
    files = {LOAD_SCRIPT: load.read_bytes(), DESCRIBE: text, "build.json": dump({**facts, "build_id": build_id})}
    for name, data in files.items():
        write_atomically(folder / name, data)
    ucx = _ucx(env.get("LD_LIBRARY_PATH", ""))
    _bash(folder / LOAD_SCRIPT, [python, "-I", "-B", str(folder / DESCRIBE), str(ucx or folder / "no-ucx")])
    path = Path(modules_image(root, row).build_manifest)
    document = read_manifest(path.read_bytes(), str(path))
    update = {"digest": manifest_id(document), "document": document, "ucx_version": document["ucx"]["version"]}
    return row.model_copy(update=update)


def _facts(spec: str, load: Path, env: Mapping[str, str], packages: Sequence[Sequence[str]]) -> dict[str, Any]:
    ucx = parse(spec)
    none = ucx.kind == "none"
    bound = [] if none else [(match[1], version) for name, version in packages if (match := _BINDINGS.fullmatch(name))]
    name, version = min(bound, default=("none", ""))
    return {
        "kind": "modules",
        "base": {"name": "", "digest": "", "cuda": ""},
        "env": dict(env),
        "ucx": {
            "spec": spec,
            "source": "none" if none else "modules",
            "version": ucx.name,
            "release": "none" if none else ucx.release,
            "commit": ucx.commit,
        },
        "stack": {"name": "modules", "lock": hashlib.sha256(load.read_bytes()).hexdigest()},
        "binding": {"name": name, "version": version, "scheme": _SCHEMES[name]},
    }


def _loaded(load: Path) -> dict[str, str]:
    """The variables that the load lines set, whoever runs them."""
    lines = _bash(load, ["env", "-0"]).split("\0")
    pairs = (line.partition("=") for line in lines if line)
    return {name: value for name, _, value in sorted(pairs) if not _BOOKKEEPING.fullmatch(name)}


def _ucx(search: str) -> Path | None:
    """The folder of the UCX that the loader finds first; None: there is none."""
    for folder in filter(None, search.split(":")):
        if (Path(folder) / "libucp.so.0").exists():
            return Path(folder).parent
    return None


def _bash(load: Path, arguments: Sequence[str]) -> str:
    """Standard output of a program that runs with what the load lines bring."""
    kept = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
    try:
        done = subprocess.run(
            ["bash", "-c", LOAD, str(load.resolve()), *arguments],
            env={"PATH": _PATH, **kept},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise MissingToolError(
            f"{load} doesn't end within {DEADLINE_S:.0f} s", then="load the modules by hand"
        ) from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        own = [line for line in lines if line.startswith("gpubench: ")] or lines
        raise _CAUSES.get(done.returncode, DataError)(
            f"{own[-1].removeprefix('gpubench: ')}; load lines written to {load}",
            then="run it again on a node of the site" if done.returncode == 5 else f"try them: bash -c '. {load}'",
        )
    return done.stdout


def obtain(request: ImageRequest) -> Obtained:
    """What ``images build`` has locked: what is loaded must not be asked anew on every day."""
    return obtain_locked(request, "modules", functools.partial(modules_image, request.paths.root))
