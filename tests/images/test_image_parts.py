"""The Python below a stack, the UCX that a wheel really holds, and uv's environment and failures."""

from pathlib import Path

import pytest

from gpubench.errors import DataError, MissingToolError
from gpubench.images.compatibility import stacks
from gpubench.images.kinds import venvs
from gpubench.images.kinds.venvs import ask_ucx
from gpubench.images.process import environment, failure
from gpubench.images.wheels import resolve


def test_the_tool_s_own_python_is_taken_where_the_stack_supports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.python_version", lambda: "3.12.4")
    monkeypatch.setattr("sys.executable", "/opt/python")
    assert venvs.find_python(stacks()[0]) == venvs.Interpreter("/opt/python", "3.12.4")


def test_a_machine_without_a_fitting_python_is_told_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.python_version", lambda: "3.15.0")
    monkeypatch.setattr(venvs, "program", lambda: "/nonexistent/uv")
    with pytest.raises(MissingToolError, match=r"needs Python 3\.11 to 3\.13; .* 3\.15\.0.*install Python 3\.13"):
        venvs.find_python(stacks()[0])


@pytest.mark.parametrize(
    "said",
    [
        "# Library version: 1.18.0\n# Library path: {here}/libucx/lib/libucs.so.0",
        "# Library version: 1.19.0\n# Library path: /usr/lib/libucs.so.0",
        "Segmentation fault",
    ],
)
def test_a_wheel_that_holds_or_loads_another_ucx_is_refused(tmp_path: Path, said: str) -> None:
    program = tmp_path / "libucx" / "bin" / "ucx_info"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{said.format(here=tmp_path)}'\n")
    program.chmod(0o755)
    with pytest.raises(DataError, match=r"the wheel of UCX 1\.19\.0 answers as UCX"):
        ask_ucx(tmp_path, resolve("1.19.0"))


def test_the_shell_says_where_packages_come_from_and_nothing_else() -> None:
    shell = {
        "UV_DEFAULT_INDEX": "index",
        "UV_HTTP_TIMEOUT": "3",
        "UV_LINK_MODE": "symlink",
        "UV_PYTHON": "3.8",
        "UV_OVERRIDE": "other.txt",
        "PYTHONPATH": "/elsewhere",
        "VIRTUAL_ENV": "/venv",
        "HOME": "/home/me",
    }
    env = environment(shell)
    assert env["UV_DEFAULT_INDEX"] == "index"
    assert env["UV_HTTP_TIMEOUT"] == "3"
    assert env["HOME"] == "/home/me"
    assert env["UV_LINK_MODE"] == "copy"
    assert not {"UV_PYTHON", "UV_OVERRIDE", "PYTHONPATH", "VIRTUAL_ENV"} & env.keys()


def test_silence_means_bounded_time() -> None:
    assert float(environment({})["UV_HTTP_TIMEOUT"]) * (1 + int(environment({})["UV_HTTP_RETRIES"])) <= 60


def test_other_failures_keep_uv_s_last_reason() -> None:
    error = failure("UCX 1.19.0", "error: Failed\n  Caused by: Hash mismatch for `libucx`\n\n  Expected:", Path("log"))
    assert "could not install UCX 1.19.0 (Hash mismatch for `libucx`)" in str(error)
    assert "uv gave no reason" in str(failure("UCX 1.19.0", "killed", Path("log")))
