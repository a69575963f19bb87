"""The files of jobs, all at once, and files that a person has read."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from gpubench import resources
from gpubench.model.plan import Plan, PlannedJob
from gpubench.node.spec import RunSpec
from gpubench.render.job import rendered


def render_jobs(plan: Plan, jobs: list[PlannedJob], templates: Mapping[str, str], node_pyz: bytes) -> dict[str, bytes]:
    """Every file of ``jobs``, by path below the campaign; arguments as those of ``rendered``."""
    return {path: data for files in rendered(plan, jobs, templates, node_pyz) for path, data in files.items()}


def specs_of(plan: Plan) -> list[RunSpec]:
    """The specs of all its runs."""
    files = render_jobs(plan, plan.jobs, resources.job_templates(), b"")
    return [RunSpec.parse(data.decode(), name) for name, data in files.items() if name.endswith(".json")]


def check_shell(path: Path, script: str | bytes, *options: str) -> None:
    """``script``, written there, is sound shell."""
    path.write_bytes(script if isinstance(script, bytes) else script.encode())
    words = [Path(sys.executable).with_name("shellcheck"), *options, path]
    done = subprocess.run(words, capture_output=True, text=True, timeout=150, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def check_golden(path: Path, text: str) -> None:
    """Hold ``text`` against the file that a person has read; GPUBENCH_UPDATE_GOLDEN=1 rewrites that."""
    if os.environ.get("GPUBENCH_UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
