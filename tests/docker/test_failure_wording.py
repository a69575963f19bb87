"""What Docker says about a registry → what the user reads, and the exit code."""

import pytest

from gpubench.images.docker.failures import engine_failure, no_engine

HOST = "registry.example:5000"


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("no basic auth credentials", f"registry {HOST} refuses to push a"),
        ("denied: requested access to the resource is denied", f"registry {HOST} refuses to push a"),
        ('Get "https://x/v2/": dial tcp 10.0.0.1:5000: connect: connection refused', "doesn't answer"),
        ("dial tcp 127.0.0.1:40142: connect: connection refused", "doesn't answer"),
        ("received unexpected HTTP status: 429 Too Many Requests", "is overloaded"),
        ("dial tcp: lookup registry.example: no such host", "doesn't answer"),
        ("http: server gave HTTP response to HTTPS client", "doesn't answer"),
        ("toomanyrequests: rate limit exceeded", "is overloaded"),
        ("manifest for a:1 not found: manifest unknown", "hasn't got it"),
        ("received unexpected HTTP status: 500 Internal Server Error", "is out of order or its disk is full"),
        ("something new", "could not push a (something new)"),
    ],
)
def test_a_registry_s_failure_is_one_line_with_exit_code_7(said: str, line: str) -> None:
    error = engine_failure("push a", said, HOST)
    assert line in str(error)
    assert said in str(error)
    assert HOST in str(error)
    assert error.exit_code == 7
    assert "\n" not in str(error)


def test_a_refusal_says_where_logins_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", "/home/me/.docker")
    error = engine_failure("push a", "unauthorized: authentication required", HOST)
    assert error.then == f"check the login in /home/me/.docker/config.json: docker login {HOST}"


def test_an_engine_that_is_forbidden_is_not_an_engine_that_is_down() -> None:
    forbidden = no_engine("unix:///run/docker.sock", "PermissionError(13, 'Permission denied')")
    assert "you may not use Docker at unix:///run/docker.sock" in str(forbidden)
    assert "group" in forbidden.then
    down = no_engine("unix:///run/docker.sock", "No such file or directory")
    assert str(down).endswith("start Docker, install Podman, or set DOCKER_HOST")
    assert (forbidden.exit_code, down.exit_code) == (5, 5)
