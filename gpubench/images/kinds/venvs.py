"""Kind ``venv``: one Python stack for all images of a campaign, and one folder of libucx per UCX version.

Below ``paths.images`` (default: the user's cache directory) lie, side by side::

    venv/ucxx-0.45.1-py3.11.7-<key>/files/bin/python       a stack: Python packages, no UCX
    venv/ucx-1.19.0-<key>/files/libucx/lib/libucp.so.0     one UCX version, shared by all stacks

``<key>`` is the hash of what goes in: the lock's bytes, the wheel's SHA-256, the Python version. Every input is pinned
by its own hash, so one key means one content; the content's hash is measured after the build (see ``folders``) and is
the image's id. A folder never changes once it has its name: a campaign's image stays as it was when others are built.

No venv can be moved whole (its scripts name their Python by path), but ``bin/python`` finds its packages through
``pyvenv.cfg`` beside it, wherever it lies: that is all that is ever used, so building elsewhere and renaming is safe.
"""

import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gpubench.errors import BuildError, DataError, MissingToolError, PlanRefusedError, UsageError
from gpubench.images import folders
from gpubench.images.compatibility import Stack, choose, stacks
from gpubench.images.folders import Folder, Progress
from gpubench.images.kinds.base import Entry, ImagePaths, ImageRequest, Obtained
from gpubench.images.manifests import MANIFEST
from gpubench.images.process import WHEELS_ONLY, environment, program, run_uv
from gpubench.images.ucx_source import UcxSource, named_source
from gpubench.images.ucx_specs import wheel_of
from gpubench.images.wheels import Wheel
from gpubench.model.base import nearest
from gpubench.model.image import Image, manifest_id
from gpubench.model.quantities import format_seconds
from gpubench.model.site import Site
from gpubench.model.variant import ImageSpec
from gpubench.node.spec.plain import content_id
from gpubench.resources import docker_file

ON_DEMAND = True
BuiltImage = tuple[Image, dict[str, Any]]
"""With its manifest."""


@dataclasses.dataclass(frozen=True)
class Interpreter:
    """A Python: the path of its program and its full version, like ``3.11.7``."""

    path: str
    version: str


def find_python(stack: Stack) -> Interpreter:
    """A Python inside the stack's range. Raises MissingToolError: there is none on this machine."""
    own = platform.python_version()
    if stack.python.holds(".".join(own.split(".")[:2])):
        return Interpreter(sys.executable, own)
    first, last = (int(end.split(".")[1]) for end in (stack.python.min, stack.python.max))
    for minor in range(last, first - 1, -1):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            path = _printed(program(), "python", "find", "--no-project", "--no-config", f"3.{minor}")
            return Interpreter(path, _printed(path, "-I", "-c", "import platform; print(platform.python_version())"))
    raise MissingToolError(
        f"stack {stack.name} needs Python {stack.python}; gpubench runs on {own}, and no other Python was found",
        then=f"install Python {stack.python.max}",
    )


def _printed(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=environment(os.environ), check=True, timeout=60)
    return done.stdout.strip()


_STAND_IN = "venv/libucx.py"
_LOCKED = re.compile(r"^([a-z0-9][a-z0-9.-]*)==(\S+)", re.MULTILINE)
_LOCK_NAME = "gpubench-lock.txt"
_RELEASED_TOGETHER = (frozenset({"dask", "distributed"}),)
"""Each pins the other's exact version."""


def stack_folder(stack: Stack, home: Path, progress: Progress, pins: Mapping[str, str]) -> Folder:
    """The stack's folder below ``home``, built if it is missing; raises as ``ensure``.

    ``pins`` are versions by package that take the place of the row's (see ``whole_pins``). What they need is then
    resolved anew by uv, which keeps every version of the row's lock that still fits; the lock that comes out lies in
    the folder.
    """
    python = find_python(stack)
    more = "".join(f", {name} {version}" for name, version in sorted(pins.items()))
    what = f"stack {stack.name}{more}"

    def fill(files: Path, hold: int) -> dict[str, Any]:
        started = time.monotonic()
        progress(f"building the Python stack {stack.name}: dask {stack.dask}, Python {python.version}{more}")
        log = home / "logs" / f"stack-{stack.name}.log"
        run_uv(["venv", "--no-project", "--python", python.path, str(files), "--allow-existing"],
               what=f"a venv on {python.path}", folder=files.parent, log=log, hold=hold)  # fmt: skip
        packages = next(files.glob("lib/python3*/site-packages"))
        shutil.copyfile(docker_file(_STAND_IN), packages / "libucx.py")
        own = files / _LOCK_NAME if pins else stack.lock_file
        if pins:
            own.write_bytes(stack.lock_file.read_bytes())  # uv keeps versions of the file that it writes to
            changed = files.parent / "pins.txt"
            changed.write_text("".join(f"{name}=={version}\n" for name, version in sorted(pins.items())))
            run_uv(
                [*_COMPILE, "--python", str(files / "bin" / "python"), "--overrides", str(changed), "-o", str(own),
                 str(stack.lock_file.with_suffix(".in"))],
                what=what, folder=files.parent, log=log, hold=hold,
            )  # fmt: skip
            changed.unlink()
        arguments = ["pip", "sync", "--python", str(files / "bin" / "python"), *WHEELS_ONLY, "--compile-bytecode"]
        run_uv([*arguments, str(own)], what=what, folder=files.parent, log=log, hold=hold)
        progress(f"built the Python stack {stack.name} in {format_seconds(time.monotonic() - started)}")
        lock_hash = hashlib.sha256(own.read_bytes()).hexdigest()
        return {"python": python.version, "lock": lock_hash, "packages": _packages(packages)}

    return folders.obtain(home, _stack_name(stack, python, pins), fill, progress, sound=check_python)


def _stack_name(stack: Stack, python: Interpreter, pins: Mapping[str, str]) -> str:
    """The folder's name: what is pinned by one name is one content."""
    key = content_id(
        {
            "lock": hashlib.sha256(stack.lock_file.read_bytes()).hexdigest(),
            "libucx": hashlib.sha256(docker_file(_STAND_IN).read_bytes()).hexdigest(),
            "python": python.version,
            "machine": platform.machine(),
            **({"pins": dict(sorted(pins.items()))} if pins else {}),
        }
    )
    return f"{stack.name}-py{python.version}-{key}"


_COMPILE = (
    *("pip", "compile", "--generate-hashes", "--only-binary", ":all:", "--no-annotate", "--no-header"),
    *("--no-emit-index-url", "--no-emit-find-links", "--no-emit-package", "libucx-cu12"),
)


def whole_pins(stack: Stack, packages: Mapping[str, str]) -> dict[str, str]:
    """``packages``, and those that are released together with one of them, in the same version.

    Raises:
        UsageError: a package that the stack doesn't hold, or that a variant can't choose.
    """
    held = dict(_LOCKED.findall(stack.lock_file.read_text("utf-8")))
    pins = dict(packages)
    for name in packages:
        if belongs_to_binding(name):
            names = ", ".join(row.name for row in stacks() if row.packages == "wheels")
            raise UsageError(
                f"'{name}' belongs to the binding and can't be chosen by itself",
                then=f"UCX is the first word of a variant, and the binding comes with a stack: stack=NAME, of {names}",
            )
        if name not in held:
            raise UsageError(
                f"stack {stack.name} holds no package '{name}'{nearest(name, held)}",
                then="a variant changes versions of packages that are in its stack",
            )
        for group in _RELEASED_TOGETHER:
            pins |= {other: pins.get(other, packages[name]) for other in group if name in group}
    return pins


def belongs_to_binding(package: str) -> bool:
    """Whether a package comes with a stack's binding, and no variant can choose it."""
    return package.startswith(("libucx", "ucx-py", "ucxx", "libucxx", "distributed-ucxx"))


def is_locked(package: str, stack_name: str, *, has_gpus: bool) -> bool:
    """Whether a stack's lock holds a package, so that a variant can choose its version."""
    rows = [row.on_gpus(has_gpus) for row in stacks() if row.name == stack_name]
    return any(package in dict(_LOCKED.findall(row.lock_file.read_text("utf-8"))) for row in rows)


def pinned_exactly(image: Image) -> list[tuple[str, str]]:
    """Pairs of packages of an image of this kind, of which the first requires one exact version of the second."""
    pairs: list[tuple[str, str]] = []
    for folder in Path(image.python).parents[1].glob("lib/python3*/site-packages"):
        for item in importlib.metadata.distributions(path=[str(folder)]):
            for requirement in map(Requirement, item.requires or []):
                exact = any(part.operator == "==" and not part.version.endswith("*") for part in requirement.specifier)
                if exact and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
                    pairs.append((canonicalize_name(item.metadata["Name"]), canonicalize_name(requirement.name)))
    return pairs


def check_python(stack: Folder) -> None:
    """Whether the Python that the stack was built on is still there. Raises DataError: it is gone."""
    python = stack.files / "bin" / "python"
    if not os.access(python, os.X_OK):
        raise DataError(
            f"image folder {stack.path} was built on a Python that is gone ({python.readlink()})",
            then="the next plan or bench of its version builds it again",
        )


def _packages(folder: Path) -> dict[str, str]:
    distributions = importlib.metadata.distributions(path=[str(folder)])
    return dict(sorted((item.metadata["Name"].lower().replace("_", "-"), item.version) for item in distributions))


def ucx_folder(ucx: Wheel | UcxSource, python: Path, home: Path, progress: Progress) -> Folder:
    """The version's folder below ``home``, built if it is missing; ``python`` says for which platform."""

    def fill(files: Path, hold: int) -> dict[str, Any]:
        begin = time.monotonic()
        log = home / "logs" / f"{_ucx_name(ucx)}.log"
        progress(f"building {ucx}")
        if isinstance(ucx, UcxSource):
            ucx.build(files, log, hold)
        else:
            where = ["--python", str(python), "--target", str(files)]
            run_uv(
                ["pip", "install", "--no-deps", *WHEELS_ONLY, *where, "-r", "-"],
                what=str(ucx),
                folder=files.parent,
                log=log,
                hold=hold,
                text=f"libucx-cu12=={ucx.version} --hash=sha256:{ucx.digest()}\n",
            )
        facts = ask_ucx(files, ucx)
        progress(f"built {ucx} in {format_seconds(time.monotonic() - begin)}")
        return facts | {"version": ucx.version, "wheel": "" if isinstance(ucx, UcxSource) else ucx.digest()}

    return folders.obtain(home, _ucx_name(ucx), fill, progress)


def _ucx_name(ucx: Wheel | UcxSource) -> str:
    return ucx.name if isinstance(ucx, UcxSource) else f"ucx-{ucx.version}-{ucx.digest()[:12]}"


def ask_ucx(files: Path, ucx: Wheel | UcxSource) -> dict[str, Any]:
    """Release, git revision and configure line, as the library itself says.

    Raises:
        DataError: it doesn't run, is another release than its name says, or was loaded from elsewhere.
        BuildError: the same of a commit, or it is of another one.
    """
    program, libraries = files / "libucx" / "bin" / "ucx_info", files / "libucx" / "lib"
    # The wheel's RUNPATH points at the machine that built it.
    env = {"LD_LIBRARY_PATH": str(libraries)}
    try:
        done = subprocess.run([program, "-v"], env=env, capture_output=True, text=True, timeout=60, check=False)
        output = done.stdout + done.stderr
    except (OSError, subprocess.SubprocessError) as error:
        output = str(error)
    facts = {
        key: match[1] if (match := re.search(pattern, output)) else ""
        for key, pattern in {
            "release": r"Library version: (\S+)",
            "path": r"Library path: (\S+)",
            "revision": r"revision (\w+)",
            "configure": r"Configured with: (.*\S)",
        }.items()
    }
    if facts["release"] != ucx.release or not facts.pop("path").startswith(str(libraries)):
        what = f"{ucx} answers as UCX '{facts['release']}': {' '.join(output.split())[:200]}"
        then = "it can't be used on this machine; choose another version"
        if isinstance(ucx, UcxSource):
            raise BuildError(what, then=then)
        raise DataError(f"the wheel of {what}", then=then)
    if isinstance(ucx, UcxSource) and not (facts["revision"] and ucx.commit.startswith(facts["revision"])):
        raise BuildError(
            f"UCX {ucx.commit[:12]} answers as revision '{facts['revision']}'", then="build another commit"
        )
    return facts


def image_id(stack: Folder, ucx: Folder) -> str:
    """``Image.id`` of a venv: the same id is the same content."""
    return content_id({"stack": stack.content, "ucx": ucx.content})


def ensure(specs: Sequence[str], root: Path, progress: Progress, *, site: Site | None = None) -> dict[str, BuiltImage]:
    """One image per spec (see ``ImageSpec``) with its manifest; folders that are there are checked, missing and damaged
    ones built.

    ``root`` is where images live (see ``images_root``); ``progress`` gets one line per step; where ``site`` has GPUs,
    stacks hold what GPU workers load. Specs that name no stack share one; those that mean the same content share the
    image. Safe to call from several processes at once.

    Raises:
        UsageError: an unknown or ambiguous version, stack or package, a ``root`` that can't be written.
        PlanRefusedError: a branch without a repository, versions that no one stack can run, no wheel for this machine.
        MissingToolError: the index doesn't answer, the disk is full, no fitting Python.
        BuildError: an image can't be built; says which.
        DataError: a wheel doesn't hold the UCX that its name says.
    """
    home = root.resolve() / "venv"
    parts = _parts(specs, site)
    stacks_by_name: dict[str, Folder] = {}
    ucx_by_name: dict[str, Folder] = {}
    images = {}
    for spec, (row, pins, ucx) in parts.items():
        key, name = str(ImageSpec(row.name, "", pins)), _ucx_name(ucx)
        try:
            if key not in stacks_by_name:
                stacks_by_name[key] = stack_folder(row, home, progress, pins)
            stack = stacks_by_name[key]
            if name not in ucx_by_name:
                ucx_by_name[name] = ucx_folder(ucx, stack.files / "bin" / "python", home, progress)
        except BuildError as error:
            raise BuildError(error.what, then=error.then, spec=spec) from None
        images[spec] = _image(spec, row, ucx, (stack, ucx_by_name[name]))
    for line in _differing({spec: manifest["stack"]["packages"] for spec, (_, manifest) in images.items()}):
        progress(line)
    return images


def find(specs: Sequence[str], root: Path, *, site: Site | None = None) -> dict[str, BuiltImage | None]:
    """As ``ensure``, but what is missing or damaged is None, and nothing is built."""
    home = root.resolve() / "venv"
    read_sound = functools.cache(folders.read_sound)  # versions share their stack, which has 10,000 files
    images: dict[str, BuiltImage | None] = {}
    for spec, (row, pins, ucx) in _parts(specs, site).items():
        try:
            stack = read_sound(home / _stack_name(row, find_python(row), pins))
            images[spec] = _image(spec, row, ucx, (stack, read_sound(home / _ucx_name(ucx))))
        except (DataError, MissingToolError):  # the build says which of them
            images[spec] = None
    return images


def _parts(specs: Sequence[str], site: Site | None) -> dict[str, tuple[Stack, dict[str, str], Wheel | UcxSource]]:
    """Row of the table, versions that differ from its lock, and UCX of each spec.

    All names are settled before anything is fetched: a typo in the last version must not cost a build.
    """
    requested = {spec: ImageSpec.parse(spec) for spec in specs}
    ucx_by_spec = {
        spec: (named_source(image.ucx, site) if site else None) or wheel_of(image.ucx)
        for spec, image in requested.items()
    }
    shared = [ucx_by_spec[spec].release for spec, image in requested.items() if not image.stack]
    common = choose(shared) if shared else None
    parts = {}
    for spec, image in requested.items():
        ucx = ucx_by_spec[spec]
        row = (common if common and not image.stack else _named(image, ucx.release)).on_gpus(
            site is not None and site.has_gpus
        )
        ucx.digest()  # a machine without wheels is refused before a stack is fetched
        parts[spec] = (row, whole_pins(row, image.packages), ucx)
    return parts


def _named(image: ImageSpec, release: str) -> Stack:
    rows = [row for row in stacks() if row.packages == "wheels" and row.ucx is not None]
    row = next((row for row in rows if row.name == image.stack), None)
    if row is None:
        names = [row.name for row in rows]
        raise UsageError(f"there is no stack '{image.stack}'{nearest(image.stack, names)}", then=", ".join(names))
    if not row.runs(release):
        raise PlanRefusedError(f"stack {row.name} runs UCX {row.ucx}, not {release}", then="take another version")
    return row


def _differing(packages: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """A line for each spec whose stack holds other packages than the first one's."""
    (first, base), *others = packages.items()
    for spec, own in others:
        differing = [name for name in sorted(base.keys() | own.keys()) if base.get(name) != own.get(name)]
        if differing:
            changes = ", ".join(f"{name} {base.get(name, 'absent')} -> {own.get(name, 'absent')}" for name in differing)
            yield f"packages of {spec} that differ from {first}: {changes}"


def ready(image: Image) -> None:
    """Raise DataError where a file changed, is missing or was added, by the sizes and times of all."""
    stack, ucx = (folders.read_sound(Path(path).parents[2]) for path in (image.python, image.env["LD_LIBRARY_PATH"]))
    check_python(stack)
    if image_id(stack, ucx) != image.id:
        raise DataError(f"image {image.ucx_spec} in {ucx.path} is not the planned one ({image.id})", then="plan again")


def _image(spec: str, row: Stack, requested: Wheel | UcxSource, folders_of: tuple[Folder, Folder]) -> BuiltImage:
    """With its manifest; two images on one stack differ only below ``ucx``.

    ``ucx.libucp`` is the file that must show up in the memory map of every process of a run; ``ucx.release`` is what
    the library reports, ``ucx.version`` the wheel's full version, ``content`` the hash of the files.
    """
    stack, ucx = folders_of
    libraries = ucx.files / "libucx" / "lib"
    if isinstance(requested, UcxSource):
        spec = str(dataclasses.replace(ImageSpec.parse(spec), ucx=f"git:{requested.commit}"))
    manifest: dict[str, Any] = {
        "schema": MANIFEST,
        "kind": "venv",
        "ucx": {
            "spec": requested.release,
            **{fact: ucx.facts[fact] for fact in ("version", "release", "revision", "configure", "wheel")},
            "content": ucx.content,
            "libucp": str((libraries / "libucp.so.0").resolve()),
        },
        "stack": {
            "name": row.name,
            **{fact: stack.facts[fact] for fact in ("python", "packages", "lock")},
            "content": stack.content,
        },
        "binding": {"name": row.binding, "version": row.binding_version, "scheme": row.scheme},
    }
    image = Image(
        kind="venv",
        id=image_id(stack, ucx),
        ucx_spec=spec,
        ucx_version=requested.version,
        binding=row.binding,
        python=str(stack.files / "bin" / "python"),
        env={"RAPIDS_LIBUCX_PREFER_SYSTEM_LIBRARY": "true", "LD_LIBRARY_PATH": str(libraries)},
        manifest=manifest_id(manifest),
    )
    return image, manifest


def obtain(request: ImageRequest) -> Obtained:
    """All on one stack, built where missing or damaged: no decision of anybody's. Raises as ``ensure``."""
    if request.look_only:
        return dict(find(request.specs, request.paths.root, site=request.site))
    return dict(ensure(request.specs, request.paths.root, request.progress, site=request.site))


def entries(paths: ImagePaths) -> list[Entry]:
    """The stacks and the UCX versions, which any of the stacks can run."""
    items = []
    for path in sorted((paths.root / "venv").glob("*-*/image.json")):
        try:
            folder = folders.read(path.parent)
        except DataError:  # whoever wants to use it is told; a list must not end at it
            continue
        version = str(folder.facts.get("version", ""))
        items.append(
            Entry(
                kind="venv",
                spec=version or "(stack)",
                ucx=version,
                identity=folder.content,
                where=str(folder.path),
                stack="" if version else folder.path.name.partition("-py")[0],
                size=folder.size,
            )
        )
    return items
