"""ReFrame in a virtual environment of its own, and as many generated tests as a campaign of ours has runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

VERSION = "4.10.4"

CONFIG = """
site_configuration = {
    "systems": [{
        "name": "bench",
        "hostnames": [".*"],
        "partitions": [{
            "name": "batch", "scheduler": "slurm", "launcher": "srun", "environs": ["builtin"],
        }],
    }],
    "general": [{"resolve_module_conflicts": False, "remote_detect": False}],
}
"""

# One job per test, each with what a run of ours is told: node count, variant, repetition, environment, time limit.
TESTS = """
import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class Run(rfm.RunOnlyRegressionTest):
    nodes = parameter({nodes})
    variant = parameter({variants})
    block = parameter(range({blocks}))
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "python3"
    time_limit = "10m"
    num_tasks_per_node = 1
    env_vars = {{"UCX_TLS": "tcp", "UCX_NET_DEVICES": "eth0"}}

    @run_after("init")
    def set_shape(self):
        self.num_tasks = self.nodes
        self.executable_opts = ["run.py", "--variant", self.variant, "--block", str(self.block)]

    @sanity_function
    def ended(self):
        return sn.assert_found("ok", self.stdout)
"""


def install(cache: Path) -> Path:
    """The ``reframe`` command, below ``cache``; installed from PyPI if it isn't there."""
    home = cache / f"reframe-{VERSION}"
    command = home / "bin" / "reframe"
    if not command.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        pip: list[str | Path] = [home / "bin" / "python", "-m", "pip", "install", "--quiet", f"reframe-hpc=={VERSION}"]
        subprocess.run(pip, check=True, stderr=subprocess.DEVNULL)
    return command


def write(directory: Path, nodes: list[int], variants: list[str], blocks: int) -> list[str]:
    """Options of a dry run of ``nodes × variants × blocks`` tests, whose files are written into ``directory``."""
    config, tests = directory / "config.py", directory / "tests.py"
    config.write_text(CONFIG)
    tests.write_text(TESTS.format(nodes=nodes, variants=variants, blocks=blocks))
    return ["--config-file", str(config), "--checkpath", str(tests), "--prefix", str(directory / "out"), "--dry-run"]
