"""Print libucx-cu12.toml: every real wheel of libucx-cu12 with its SHA-256 per architecture. Called by lock.sh.

uv is asked for the newest version, then for the newest below that, and so on: no list of versions is kept by hand.
``--only-binary`` leaves out the source stubs before 1.14.1, whose build tries a download.
"""

import subprocess
import sys
import tomllib
from typing import Any

PACKAGE = "libucx-cu12"
ARCHITECTURES = ("aarch64", "x86_64")


def newest(uv: str, condition: str) -> dict[str, Any] | None:
    """The locked package that fits ``condition``, None when there is none."""
    command = [uv, "pip", "compile", "-q", "--universal", "--python-version", "3.11", "--only-binary", ":all:"]
    done = subprocess.run(
        [*command, "--format", "pylock.toml", "-"],
        input=PACKAGE + condition,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        package: dict[str, Any] = tomllib.loads(done.stdout)["packages"][0]
        return package
    # An index that doesn't answer must not look like the end of the list.
    if "No solution found" not in done.stderr:
        sys.exit(done.stderr)
    return None


def hashes(package: dict[str, Any]) -> dict[str, str]:
    """Architecture → SHA-256 of its wheel."""
    found = {}
    for wheel in package["wheels"]:
        for architecture in ARCHITECTURES:
            if wheel["url"].endswith(f"_{architecture}.whl"):
                found[architecture] = wheel["hashes"]["sha256"]
    return found


def main(uv: str) -> None:
    """Write the table to standard output, newest first."""
    lines = ["# Written by docker/locks/lock.sh: the wheels of libucx-cu12, newest first, SHA-256 per architecture."]
    condition = ""
    while package := newest(uv, condition):
        lines += ["", "[[wheel]]", f'version = "{package["version"]}"', "", "[wheel.sha256]"]
        lines += [f'{architecture} = "{digest}"' for architecture, digest in sorted(hashes(package).items())]
        condition = f"<{package['version']}"
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
