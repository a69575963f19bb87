"""uv's environment and the one line that its failures become."""

from pathlib import Path

from gpubench.images.process import environment, failure


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
