"""As whom the job script starts containers: what they write must be the caller's."""

import os
import subprocess
from pathlib import Path

import pytest

from gpubench import resources
from gpubench.render.jinja import environment
from gpubench.runtimes import RUNTIMES

OWN = f"{os.getuid()}:{os.getgid()}"


@pytest.mark.parametrize(
    ("answer", "user"),
    [
        ("echo '[name=apparmor name=seccomp,profile=builtin name=cgroupns]'", OWN),
        # Their user 1000 is a subordinate one of the caller's, who owns nothing: root is the caller
        # (docs.docker.com/engine/security/rootless; daemon/info.go of moby has the name).
        ("echo '[name=seccomp,profile=builtin name=rootless name=cgroupns]'", "0:0"),
        ("echo 'Cannot connect to the Docker daemon' >&2; exit 1", OWN),
    ],
)
def test_containers_run_as_the_caller_who_is_root_to_a_rootless_engine(tmp_path: Path, answer: str, user: str) -> None:
    docker = tmp_path / "docker"
    docker.write_text(f"#!/bin/sh\n[ \"$*\" = 'info --format {{{{.SecurityOptions}}}}' ] || exit 2\n{answer}\n")
    docker.chmod(0o755)
    templates = environment(resources.texts("templates", "runtimes/*"))
    script = templates.get_template(RUNTIMES["docker"].TEMPLATE).render() + '\necho "$GPUBENCH_USER"\n'
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euc", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=150, check=True
    )
    assert (done.stdout, done.stderr) == (f"{user}\n", "")
