"""Challenges, tar streams, logs."""

import io
import stat
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import requests
from requests.auth import HTTPBasicAuth

from gpubench.errors import DataError, SchedulerError
from gpubench.images.docker import archive, build
from gpubench.images.docker.build import _write_context
from gpubench.images.docker.names import Credentials, Repository
from gpubench.images.docker.registry import LONGEST_PAUSE_S, _next_page, _RetryPolicy, log_in, parse_challenges
from tests.docker.images import tar_of

REPOSITORY = Repository.parse("r.example.org/team/ucx")


@pytest.mark.parametrize(
    ("address", "user", "url"), [("unix://{}", 0, False), ("unix://{}", 1, True), ("tcp://{}:1", 0, True)]
)
def test_podman_builds_where_its_images_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, user: int, *, url: bool
) -> None:
    """The service of root, which a group may use, has other images than the user's own Podman."""
    (tmp_path / "socket").touch()
    monkeypatch.setattr(build, "find_podman", lambda: "podman")
    owner = (tmp_path / "socket").stat().st_uid
    monkeypatch.setattr("os.getuid", lambda: owner + user)
    named = address.format(tmp_path / "socket" if address.startswith("unix") else "host")
    engine = SimpleNamespace(is_podman=lambda: True, address=named)
    words = build.find_builder(cast(Any, engine)).command
    assert (f"--url={named}" in words, "build" in words) == (url, True)


@pytest.mark.parametrize(("network", "words"), [("", ""), ("default", ""), ("host", "--network=host")])
def test_the_network_of_a_build_is_named_in_words_that_every_builder_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, network: str, words: str
) -> None:
    """``default`` is BuildKit's; Podman has networks by name (NamespaceOptionsFromFlagSet of buildah)."""
    program = tmp_path / "builder"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{tmp_path}/words\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setattr(build, "find_builder", lambda _engine: build.Builder([str(program)]))
    job = build.BuildJob("one", {"Dockerfile": b""}, {}, "t", "x86_64", network=network)
    build.build_all(cast(Any, None), [job], tmp_path / "logs", lambda _outcome: None)
    given = (tmp_path / "words").read_text().splitlines()
    assert " ".join(word for word in given if word.startswith("--network")) == words


def test_a_challenge_is_read_with_quotes_and_commas() -> None:
    header = 'Bearer realm="https://auth.example/token",service="a, b",scope="repository:x:pull,push",error="a \\"b\\""'
    assert parse_challenges(header) == {
        "bearer": {
            "realm": "https://auth.example/token",
            "service": "a, b",
            "scope": "repository:x:pull,push",
            "error": 'a "b"',
        }
    }
    assert parse_challenges('Basic realm="x"') == {"basic": {"realm": "x"}}
    assert parse_challenges('Negotiate, Basic realm=x, charset=""') == {
        "negotiate": {},
        "basic": {"realm": "x", "charset": ""},
    }
    assert parse_challenges("") == {}


CODEBERG = (
    'Bearer realm="https://codeberg.org/v2/token",service="container_registry",scope="*",'
    'Basic realm="https://codeberg.org/v2",service="container_registry",scope="*"'
)
"""renovatebot/renovate lib/modules/datasource/docker/common.spec.ts."""
ARTIFACTORY = 'Bearer realm="https://r.example.org/token",service="r.example.org", Basic realm="Artifactory Realm"'
"""Two headers, as an HTTP client joins them; google/go-containerregistry#1075."""
BASIC_FIRST = 'Basic realm="https://r.example.org", Bearer realm="https://r.example.org/token",service="x"'


@pytest.mark.parametrize(
    ("header", "realm"),
    [
        (CODEBERG, "https://codeberg.org/v2/token"),
        (ARTIFACTORY, "https://r.example.org/token"),
        (BASIC_FIRST, "https://r.example.org/token"),
    ],
)
def test_a_password_goes_to_the_realm_of_the_tokens_and_to_no_other(header: str, realm: str) -> None:
    asked: list[tuple[str, str, dict[str, Any]]] = []

    def send(method: str, url: str, **options: Any) -> requests.Response:
        asked.append((method, url, options))
        answer = requests.Response()
        answer.status_code, answer._content = 200, b'{"token": "t"}'
        return answer

    for login in (Credentials("me", "secret"), Credentials("me", token="refresh")):
        log_in(header, REPOSITORY, login, send)
    assert [(method, url) for method, url, _ in asked] == [("GET", realm), ("POST", realm)]
    assert asked[1][2]["allow_redirects"] is False, "a redirected POST would hand on the token"


def test_of_kerberos_and_a_password_the_password_is_taken() -> None:
    """A registry behind Kerberos offers both; Negotiate alone can't be answered."""

    def send(method: str, url: str, **options: Any) -> requests.Response:
        raise AssertionError("nobody else is asked")

    login = Credentials("me", "secret")
    assert log_in('Negotiate, Basic realm="r"', REPOSITORY, login, send) == HTTPBasicAuth(b"me", b"secret")
    with pytest.raises(SchedulerError, match=r"401, asks for 'negotiate'"):
        log_in("Negotiate", REPOSITORY, login, send)


def test_retry_after_comes_in_two_forms_and_is_bounded() -> None:
    wait = _RetryPolicy().parse_retry_after
    assert wait("7") == 7.0
    assert wait("3600") == LONGEST_PAUSE_S
    assert wait("Thu, 01 Jan 1970 00:00:00 GMT") == 0.0
    assert wait("Fri, 01 Jan 2100 00:00:00 GMT") == LONGEST_PAUSE_S
    for no_time in ("soon", "nan", "inf", "-5", ""):
        assert wait(no_time) == 0.0


def test_the_next_page_stays_on_the_host() -> None:
    link = '<https://evil.example/v2/team/x/tags/list?last=b&n=2>; rel="next"'
    assert _next_page(link) == "team/x/tags/list?last=b&n=2"
    assert _next_page("") == ""


def test_the_same_files_are_the_same_context(tmp_path: Path) -> None:
    _write_context(tmp_path, {"run.sh": b"#!/bin/sh\n", "gpubench/Dockerfile": b"FROM scratch\n"})
    entries = {path.name: path.stat() for path in tmp_path.rglob("*") if path.is_file()}
    assert {name: stat.S_IMODE(entry.st_mode) for name, entry in entries.items()} == {
        "Dockerfile": 0o644,
        "run.sh": 0o755,
    }
    assert {entry.st_mtime for entry in entries.values()} == {0}


def test_a_file_is_found_however_its_path_begins() -> None:
    tar = tar_of("gpubench/manifest.json", b"{}")
    pieces = [tar[at : at + 7] for at in range(0, len(tar), 7)]
    for name in ("gpubench/manifest.json", "/gpubench/manifest.json", "./gpubench/manifest.json"):
        assert archive.member(pieces, name, what="x") == b"{}"


def test_a_missing_or_damaged_file_is_one_line() -> None:
    with pytest.raises(DataError, match="image a holds no b"):
        archive.member([tar_of("a", b"")], "b", what="image a")
    with pytest.raises(DataError, match="layer a can't be read"):
        archive.member([b"no tar at all" * 100], "b", what="layer a")


def test_a_link_is_no_file() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        link = tarfile.TarInfo("manifest.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    with pytest.raises(DataError, match="no regular file"):
        archive.member([out.getvalue()], "manifest.json", what="image a")
