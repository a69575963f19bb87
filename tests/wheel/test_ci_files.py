"""The workflows of docs/ci.md and action.yml: every step that is a shell command, in order, from a wheel."""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from tests.cli.campaigns import write_suite
from tests.conftest import ROOT, need, plain_environment
from tests.docs.manual import blocks
from tests.wheel.conftest import Environment

GITHUB, USE, GITLAB = (yaml.safe_load(block.text) for block in blocks(ROOT / "docs" / "ci.md", "yaml"))
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
BASH = ("bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c")
"""As GitHub starts a step whose shell is bash; where a step names none it leaves out pipefail."""
WISHES = {"BASELINE": "a=1.22.0", "CANDIDATE": "b=1.22.0", "SUITE": "tiny.toml", "BLOCKS": "1"}
GH = '#!/bin/sh\nprintf "%s\\n" "$@" > gh.txt\n'


def steps_of(steps: list[dict[str, Any]], values: Mapping[str, str]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Name, command and own variables of each step that is a command; ``values`` of the expressions."""
    for step in steps:
        if "run" in step:
            env = {name: expanded(str(text), values) for name, text in step.get("env", {}).items()}
            assert "${{" not in step["run"], "an expression within a command lets its value become a command"
            yield step["name"], step["run"], env


def expanded(text: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\$\{\{\s*(\S+)\s*\}\}", lambda found: values[found[1]], text)


def shell(command: str, folder: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*BASH, command], cwd=folder, env=dict(env), capture_output=True, text=True, timeout=550, check=False
    )


@pytest.fixture
def runner(wheel_environment: Environment, tmp_path: Path) -> dict[str, str]:
    """Variables of a step in an empty working directory, with a stand-in for GitHub's own command."""
    write_suite(tmp_path, reps=2, count=20)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text(GH)
    (tmp_path / "bin" / "gh").chmod(0o755)
    env = wheel_environment.variables(tmp_path)
    env["PATH"] = f"{tmp_path / 'bin'}:{env['PATH']}"
    return {**env, "GITHUB_STEP_SUMMARY": str(tmp_path / "step-summary.md")}


def judged(folder: Path) -> None:
    """One campaign of the wished variants was run, and its verdicts are in the summary."""
    (campaign,) = (folder / "outputs").glob("*/verdicts.json")
    (cell,) = json.loads(campaign.read_text())["cells"]
    assert (cell["baseline"], cell["candidate"], cell["blocks"]) == ("a", "b", 1)
    assert "| tasks |" in (folder / "verdicts.md").read_text()


@pytest.mark.system
@pytest.mark.long
def test_the_github_workflow_runs_from_a_wheel(
    wheel_environment: Environment, runner: dict[str, str], tmp_path: Path
) -> None:
    (job,) = GITHUB["jobs"].values()
    env = {**runner, **GITHUB["env"], **WISHES, "GPUBENCH": str(wheel_environment.wheel)}
    assert set(WISHES) | {"GPUBENCH", "FAIL_ON"} == set(GITHUB["env"])
    assert GITHUB["defaults"]["run"]["shell"] == "bash"
    values = {"github.token": "secret", "github.event.number": "12"}
    for name, command, own in steps_of(job["steps"], values):
        done = shell(command, tmp_path, {**env, **own})
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
    judged(tmp_path)
    assert (tmp_path / "step-summary.md").read_text() == (tmp_path / "verdicts.md").read_text()
    assert (tmp_path / "gh.txt").read_text().split() == [
        *("pr", "comment", "12", "--body-file", "verdicts.md", "--edit-last", "--create-if-none")
    ]


@pytest.mark.system
@pytest.mark.long
def test_the_gitlab_job_runs_from_a_wheel(
    wheel_environment: Environment, runner: dict[str, str], tmp_path: Path
) -> None:
    (job,) = GITLAB.values()
    env = {**runner, **job["variables"], **WISHES, "GPUBENCH": str(wheel_environment.wheel)}
    assert set(WISHES) | {"GPUBENCH"} == set(job["variables"])
    *before, last = job["script"]
    for command in before:
        done = shell(command, tmp_path, env)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    assert shell(last, tmp_path, env).returncode in {0, *job["allow_failure"]["exit_codes"]}
    judged(tmp_path)


class Notes(http.server.BaseHTTPRequestHandler):
    """Notes of a merge request, as GitLab's API keeps them; the path and what is sent are its documentation's."""

    kept: ClassVar[dict[int, str]] = {}
    path_of_notes = "/api/v4/projects/7/merge_requests/3/notes"

    def do_GET(self) -> None:
        self._answer([{"id": number, "body": body} for number, body in self.kept.items()])

    def do_POST(self) -> None:
        self._keep(len(self.kept) + 1)

    def do_PUT(self) -> None:
        self._keep(int(self.path.rpartition("/")[2]))

    def _keep(self, number: int) -> None:
        sent = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.kept[number] = sent["body"][0]
        self._answer({"id": number})

    def _answer(self, plain: object) -> None:
        known = self.path.startswith(self.path_of_notes) and self.headers["PRIVATE-TOKEN"] == "secret"
        self.send_response(200 if known else 401)
        self.end_headers()
        self.wfile.write(json.dumps(plain).encode())

    def log_message(self, *_words: object) -> None:
        """Nobody reads it."""


def test_gitlab_s_note_is_written_once_and_updated_then(tmp_path: Path) -> None:
    need(shutil.which("curl") is not None, "curl")
    (job,) = GITLAB.values()
    (command,) = [line for line in job["script"] if "GITLAB_TOKEN" in line]
    with http.server.HTTPServer(("127.0.0.1", 0), Notes) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        env = {
            **plain_environment(),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "CI_API_V4_URL": f"http://127.0.0.1:{server.server_address[1]}/api/v4",
            "CI_PROJECT_ID": "7",
            "GITLAB_TOKEN": "secret",
        }
        Notes.kept = {1: "somebody's words"}
        (tmp_path / "verdicts.md").write_text("**one** & 5 %\n")
        assert shell(command, tmp_path, env).returncode == 0, "not of a merge request: nothing is done"
        assert Notes.kept == {1: "somebody's words"}
        env["CI_MERGE_REQUEST_IID"] = "3"
        for text in ("**one** & 5 %\n", "two\n"):
            (tmp_path / "verdicts.md").write_text(text)
            done = shell(command, tmp_path, env)
            assert done.returncode == 0, done.stderr
            assert Notes.kept == {1: "somebody's words", 2: f"<!-- gpubench -->\n\n{text}"}
        assert shell(command, tmp_path, {**env, "GITLAB_TOKEN": "wrong"}).returncode != 0
        server.shutdown()


@pytest.mark.system
def test_the_action_runs_from_a_wheel(wheel_environment: Environment, runner: dict[str, str], tmp_path: Path) -> None:
    given = {"baseline": "a=1.22.0", "candidate": "b=1.22.0", "suite": "tiny.toml", "blocks": "1"}
    given |= {"gpubench": str(wheel_environment.wheel)}
    inputs = {name: given.get(name, one.get("default")) for name, one in ACTION["inputs"].items()}
    for name, command, own in steps_of(
        ACTION["runs"]["steps"], {f"inputs.{key}": text for key, text in inputs.items()}
    ):
        done = shell(command, tmp_path, {**runner, **own})
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
    judged(tmp_path)


@pytest.mark.parametrize("fail_on", ["regression", "inconclusive"])
@pytest.mark.parametrize("code", [0, 4, 20, 21])
def test_the_last_step_asks_for_what_the_user_wants_and_passes_the_code_on(
    tmp_path: Path, code: int, fail_on: str
) -> None:
    """The exit codes are those of a stand-in: whether `compare` gives them is tested where it is."""
    stand_in = f'#!/bin/sh\n[ "$*" = "compare --fail-on {fail_on}" ] && exit {code}\nexit 99\n'
    (tmp_path / "gpubench").write_text(stand_in)
    (tmp_path / "gpubench").chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "FAIL_ON": fail_on}
    for steps in (GITHUB["jobs"]["compare"]["steps"], ACTION["runs"]["steps"]):
        (command,) = [step["run"] for step in steps if step.get("name") == "decide"]
        assert shell(command, tmp_path, env).returncode == code


def test_the_page_gives_the_action_only_inputs_that_it_has_and_all_that_it_needs() -> None:
    (step,) = USE["steps"]
    needed = {name for name, one in ACTION["inputs"].items() if one.get("required")}
    assert needed <= set(step["with"]) <= set(ACTION["inputs"])
    assert set(step["with"]) == {"baseline", "candidate", "suite", "blocks", "fail-on"}
    for name, one in ACTION["inputs"].items():
        assert one["description"], name
    assert all(step["shell"] == "bash" for step in ACTION["runs"]["steps"])


def test_the_shell_of_the_steps_passes_shellcheck(tmp_path: Path) -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    steps = steps_of(GITHUB["jobs"]["compare"]["steps"], {"github.token": "", "github.event.number": ""})
    commands = [*(command for _, command, _ in steps), *(line for job in GITLAB.values() for line in job["script"])]
    for number, command in enumerate(commands):
        (tmp_path / f"{number}.sh").write_text(f"#!/bin/bash\n{command}\n")
    done = subprocess.run(
        [str(shellcheck), *map(str, sorted(tmp_path.glob("*.sh")))], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""
