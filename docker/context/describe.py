"""The last step of an image's build: ask the real UCX and the real binding what they are, and write the manifest.

Runs with the image's own Python (3.9 or newer) and nothing else; the only argument is UCX's folder where that isn't the
one of a container. The build fails with one line where the image isn't what its recipe says.
"""

import ctypes
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict

HERE = Path(__file__).resolve().parent
UCX = Path("/opt/gpubench/ucx")
MODULES = {"ucxx": "ucxx", "ucx-py": "ucp"}
"""What a binding is imported as."""
PARTS = {"cuda": "libuct_cuda", "rdmacm": "libuct_rdmacm", "verbs": "libuct_ib"}
"""UCX's modules, by the word of configure that asks for them."""
DRIVER = {"libcuda.so.1", "libnvidia-ml.so.1"}
"""Only a machine with GPUs has these."""

LOADED = """
import importlib, sys
importlib.import_module(sys.argv[1])
print([line.split(None, 5)[-1].strip() for line in open("/proc/self/maps") if "/libucp.so" in line][-1])
"""


class WrongImageError(Exception):
    """The image isn't what its recipe says."""


def manifest(facts: Dict[str, Any], ucx: Path = UCX) -> Dict[str, Any]:
    """The manifest from the recipe's facts and from what is really there."""
    asked = facts["ucx"]
    found = {"release": "none", "revision": "", "configure": "", "libucp": ""}
    if asked["source"] != "none":
        found = library(ucx, environment(facts, ucx))
        check_release(asked["release"], found["release"])
        if asked["source"] in ("git", "wheel"):
            check_parts(libucp_of(ucx).parent / "ucx", found["configure"], environment(facts, ucx))
        if facts["binding"]["name"] in MODULES:
            check_binding(facts["binding"]["name"], found["libucp"], environment(facts, ucx))
    elif libucp_of(ucx).exists():
        raise WrongImageError(f"there is a UCX in {ucx}, and the recipe says none")
    version = asked["version"] if asked["source"] == "wheel" else found["release"]
    conda = {"conda": conda_packages()} if facts["kind"] == "conda" else {}
    return {
        "schema": "gpubench/manifest/1",
        "kind": facts["kind"],
        "build_id": facts["build_id"],
        "base": {**facts["base"], "os": operating_system()},
        "env": facts["env"],
        "ucx": {**asked, **found, "version": version},
        "stack": {**facts["stack"], "python": platform.python_version(), "packages": packages(), **conda},
        "binding": facts["binding"],
    }


def libucp_of(ucx: Path) -> Path:
    """The library in UCX's folder; on some systems 64-bit libraries are installed in a folder of their own."""
    path = ucx / "lib64" / "libucp.so.0"
    return path if path.exists() else ucx / "lib" / path.name


def environment(facts: Dict[str, Any], ucx: Path) -> Dict[str, str]:
    """In which programs are asked: this UCX first, then what the image sets."""
    folders = [str(libucp_of(ucx).parent), *facts["env"].get("LD_LIBRARY_PATH", "").split(":")]
    return {
        **os.environ,
        "LD_LIBRARY_PATH": ":".join(dict.fromkeys(filter(None, folders))),
        "RAPIDS_LIBUCX_PREFER_SYSTEM_LIBRARY": "true",
    }


def library(ucx: Path, env: Dict[str, str]) -> Dict[str, str]:
    """What libucp and ucx_info say."""
    path = libucp_of(ucx)
    try:
        libucp = ctypes.CDLL(str(path))
    except OSError as error:
        raise WrongImageError(f"UCX can't be loaded: {error}") from None
    libucp.ucp_get_version_string.restype = ctypes.c_char_p
    said = run([str(ucx / "bin" / "ucx_info"), "-v"], env)
    facts = {
        key: match[1] if (match := re.search(pattern, said)) else ""
        for key, pattern in {"revision": r"revision (\w+)", "configure": r"[Cc]onfigured with: *(.*\S)"}.items()
    }
    return {"release": libucp.ucp_get_version_string().decode(), "libucp": str(path.resolve()), **facts}


def check_release(expected: str, found: str) -> None:
    """A name like ``1.14`` stands for all of its releases, an empty one for any."""
    if expected and found != expected and not found.startswith(expected + "."):
        raise WrongImageError(f"UCX {expected} was to be built, the library says {found}")


def check_parts(folder: Path, configure: str, env: Dict[str, str]) -> None:
    """UCX has the modules that it was configured with, and each finds its libraries.

    Neither is told otherwise: configure only warns where it finds no verbs, and UCX leaves out what it can't load.
    """
    for word, module in PARTS.items():
        if re.search(rf"--with-{word}(?=[\s=]|$)", configure) and not (folder / f"{module}.so.0").exists():
            raise WrongImageError(f"UCX was configured --with-{word}, and has no {module}: its build found none")
    for path in sorted(folder.glob("lib*.so.0")):
        missing = set(re.findall(r"^\s*(\S+) => not found", run(["ldd", str(path)], env), re.MULTILINE)) - DRIVER
        if missing:
            raise WrongImageError(f"UCX's module {path.name} doesn't find {', '.join(sorted(missing))}")


def check_binding(name: str, libucp: str, env: Dict[str, str]) -> None:
    """The binding must load with this UCX, and no other."""
    loaded = run([sys.executable, "-I", "-B", "-c", LOADED, MODULES[name]], env).splitlines()[-1]
    if os.path.realpath(loaded) != libucp:
        raise WrongImageError(f"{name} loads {loaded}, the image's UCX is {libucp}")


def run(words: "list[str]", env: Dict[str, str]) -> str:
    """Standard output of a program that must succeed."""
    try:
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=120, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise WrongImageError(f"{words[0]} doesn't run: {error}") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise WrongImageError(f"{' '.join(words[-1:])} fails with this UCX: {last}")
    return done.stdout


def packages() -> Dict[str, str]:
    """Version by name of every package, names as manifests write them."""
    found = ((item.metadata["Name"], item.version) for item in importlib.metadata.distributions())
    return dict(sorted((name.lower().replace("_", "-"), version) for name, version in found if name))


def conda_packages() -> Dict[str, str]:
    """Version, build and SHA-256 by name of every package that conda installed; what no pin fixes stands here."""
    found = {}
    for path in sorted((Path(sys.prefix) / "conda-meta").glob("*.json")):
        item = json.loads(path.read_text(encoding="utf-8"))
        found[item["name"]] = " ".join([item["version"], item["build"], item.get("sha256") or item.get("md5") or ""])
    return dict(sorted(found.items()))


def operating_system() -> str:
    """``PRETTY_NAME`` of os-release; empty where there is none."""
    try:
        text = Path("/etc/os-release").read_text(encoding="utf-8")
    except OSError:
        return ""
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)', text, re.MULTILINE)
    return found[1] if found else ""


def main() -> int:
    """Write ``manifest.json`` beside this file; 1 and one line where the image is wrong."""
    facts = json.loads((HERE / "build.json").read_text(encoding="utf-8"))
    ucx = Path(sys.argv[1]) if sys.argv[1:] else UCX
    try:
        text = json.dumps(manifest(facts, ucx), indent=1, sort_keys=True) + "\n"
    except WrongImageError as error:
        sys.stderr.write(f"gpubench: {error}\n")
        return 1
    path = HERE / "manifest.json"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)
    return 0


if __name__ == "__main__":
    sys.exit(main())
