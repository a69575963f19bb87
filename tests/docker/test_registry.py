"""The registry's API, asked without a Docker engine, also of a registry that misbehaves."""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpubench.errors import DataError, MissingToolError, SchedulerError
from gpubench.images.docker import registry as client
from gpubench.images.docker.registry import Registry
from tests.docker.daemon import PASSWORD, USER, RegistryServer
from tests.docker.images import log_in, sha256, tar_of
from tests.docker.proxy import REFRESH, TOKEN, Fault, Proxy

pytestmark = pytest.mark.system

SINGLE = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


@pytest.fixture(autouse=True)
def _no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LONGEST_PAUSE_S", 0.2)


@pytest.fixture(scope="module")
def place(registry: RegistryServer) -> str:
    """``ucx-py-v1.14.x-20261121`` for x86_64, ``arm`` for aarch64, and ``both``."""
    name = f"{registry.host}/api/ucx"
    rows = []
    for tag, architecture in (("ucx-py-v1.14.x-20261121", "amd64"), ("arm", "arm64")):
        document = put_image(name, tag, architecture)
        platform = {"os": "linux", "architecture": architecture}
        rows.append({"mediaType": SINGLE, "digest": sha256(document), "size": len(document), "platform": platform})
    attestation = {**rows[0], "platform": {"os": "unknown", "architecture": "unknown"}}
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [attestation, *rows]}
    put(name, "manifests/both", json.dumps(index).encode(), INDEX)
    return name


@pytest.fixture
def proxy(registry: RegistryServer) -> Iterator[Proxy]:
    with Proxy(registry.host) as proxy:
        yield proxy


def through(proxy: Proxy) -> Registry:
    return Registry(f"{proxy.host}/api/ucx")


def test_tags_come_in_pages(registry: RegistryServer) -> None:
    name = f"{registry.host}/api/pages"
    for number in range(5):
        put_image(name, f"t{number}", "amd64")
    with Proxy(registry.host) as proxy:
        # This registry gives all at once; a larger one gives a part, and the address of the next.
        def part(first: int, last: int) -> Callable[[bytes], bytes]:
            return lambda body: json.dumps({"tags": json.loads(body)["tags"][first:last]}).encode()

        follow = {"Link": '</v2/api/pages/tags/list?last=t1&n=2>; rel="next"'}
        proxy.faults = [
            Fault(path="n=1000", headers=follow, change=part(0, 2)),
            Fault(path="last=t1", change=part(2, 5)),
        ]
        assert Registry(f"{proxy.host}/api/pages").tags() == [f"t{number}" for number in range(5)]
        assert proxy.faults == []


def test_a_tag_and_its_digest_are_the_same_image(place: str) -> None:
    registry = Registry(place)
    found = registry.resolve("ucx-py-v1.14.x-20261121", "x86_64")
    assert registry.resolve(found.digest, "x86_64") == found
    assert found.reference == f"{place}@{found.digest}"
    assert found.labels == {"for": "amd64"}
    assert registry.last_layer_file(found, "/gpubench/manifest.json") == b"amd64"
    with pytest.raises(DataError, match="holds no /other"):
        registry.last_layer_file(found, "/other")


def test_a_list_gives_the_wanted_architecture_under_the_digest_of_the_tag(place: str) -> None:
    registry = Registry(place)
    arm, intel = (registry.resolve("both", name) for name in ("aarch64", "x86_64"))
    assert (arm.labels, intel.labels) == ({"for": "arm64"}, {"for": "amd64"})
    assert arm.digest == intel.digest
    assert arm.config == registry.resolve("arm", "aarch64").config


def test_another_architecture_is_refused(place: str) -> None:
    for tag, architecture in (("both", "ppc64le"), ("arm", "x86_64")):
        with pytest.raises(DataError, match=f"{tag} isn't there for {architecture}"):
            Registry(place).resolve(tag, architecture)


def test_what_is_not_there_is_one_line(place: str, registry: RegistryServer) -> None:
    with pytest.raises(SchedulerError, match=r"doesn't show .*/api/ucx:v7 \(status 404\)"):
        Registry(place).resolve("v7", "x86_64")
    with pytest.raises(SchedulerError, match=f"registry {registry.host} has no repository no/such"):
        Registry(f"{registry.host}/no/such").tags()


def test_a_busy_registry_is_asked_again(proxy: Proxy, place: str) -> None:
    busy = {"Retry-After": "1"}
    proxy.faults = [
        Fault(status=429, headers=busy),
        Fault(status=503),
        Fault(reset=True),
        Fault(path="/blobs", status=500),
    ]
    assert through(proxy).resolve("arm", "aarch64").labels == {"for": "arm64"}
    assert proxy.faults == []
    assert sum("/manifests/arm" in path for path in proxy.requests) == 4


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        (Fault(status=429, headers={"Retry-After": "3600"}), "is overloaded: could not list the tags of"),
        (Fault(status=502), "is out of order or its disk is full: could not list the tags of"),
        (Fault(reset=True), "doesn't answer: could not list the tags of"),
    ],
)
def test_patience_ends(fault: Fault, line: str, proxy: Proxy, place: str) -> None:
    proxy.faults = [fault] * 20
    with pytest.raises(SchedulerError) as caught:
        through(proxy).tags()
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(proxy.requests) == client.ATTEMPTS


def test_a_silent_registry_is_not_waited_for(proxy: Proxy, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "SILENCE_S", (0.5, 0.5))
    monkeypatch.setattr(client, "ATTEMPTS", 2)
    proxy.faults = [Fault(silent=5)] * 2
    with pytest.raises(SchedulerError, match=r"doesn't answer: .*timed out"):
        through(proxy).tags()


@pytest.mark.parametrize("path", ["/manifests", "/blobs"])
def test_changed_bytes_are_noticed(path: str, proxy: Proxy, place: str) -> None:
    proxy.faults = [Fault(path=path, change=lambda body: body.replace(b"arm64", b"amd64").replace(b"2", b"3", 1))]
    with pytest.raises(DataError, match=r"bytes of .*arm aren't those of its digest"):
        through(proxy).resolve("arm", "aarch64")


def test_something_else_that_answers_is_no_registry(proxy: Proxy, place: str) -> None:
    proxy.faults = [Fault(change=lambda _: b"<html>log in to the wireless</html>")]
    with pytest.raises(DataError, match="is no registry"):
        through(proxy).tags()


def test_a_basic_login_is_used_and_never_told(
    locked_registry: RegistryServer, docker_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    name = f"{locked_registry.host}/api/ucx"
    login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    put_image(name, "v1", "amd64", f"Basic {login}")
    with pytest.raises(SchedulerError) as without:
        Registry(name).tags()
    assert f"registry {locked_registry.host} refuses to show api/ucx (401, it wants a login)" in str(without.value)
    assert (
        without.value.then == f"check the login in {docker_home / 'config.json'}: docker login {locked_registry.host}"
    )
    log_in(docker_home, locked_registry.host, password="wrong-" + PASSWORD)
    with pytest.raises(SchedulerError, match=r"refuses to list the tags of .* \(401\)") as wrong:
        Registry(name).tags()
    log_in(docker_home, locked_registry.host)
    assert Registry(name).tags() == ["v1"]
    assert not any(secret in text for secret in (PASSWORD, login) for text in (caplog.text, repr(wrong.value)))
    assert caplog.text


def test_a_netrc_does_not_replace_the_login(
    locked_registry: RegistryServer, docker_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login other password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    log_in(docker_home, locked_registry.host)
    monkeypatch.setattr(client, "is_loopback", lambda _: False)
    with pytest.raises(SchedulerError, match="has no repository never/pushed"):
        Registry(f"{locked_registry.host}/never/pushed").tags()


def test_a_token_is_fetched_with_the_login(registry: RegistryServer, place: str, docker_home: Path) -> None:
    with Proxy(registry.host, tokens=True) as proxy:
        with pytest.raises(SchedulerError, match=r"refuses to show api/ucx \(401 from http://.*/token\)"):
            through(proxy).tags()
        log_in(docker_home, proxy.host)
        proxy.requests.clear()
        assert "arm" in through(proxy).tags()
        assert len([path for path in proxy.requests if path.startswith("/token")]) == 1
        assert not any(PASSWORD in path or TOKEN in path for path in proxy.requests)


def test_an_identity_token_is_exchanged(registry: RegistryServer, place: str, docker_home: Path) -> None:
    with Proxy(registry.host, tokens=True) as proxy:
        auths = {proxy.host: {"auth": "", "identitytoken": REFRESH}}
        (docker_home / "config.json").write_text(json.dumps({"auths": auths}))
        assert "arm" in through(proxy).tags()
        assert not any(REFRESH in path for path in proxy.requests)


def test_a_public_repository_needs_no_login(registry: RegistryServer, place: str) -> None:
    with Proxy(registry.host, tokens=True, anonymous=True) as proxy:
        proxy.faults = [Fault(path="/token", status=503)]
        assert "arm" in through(proxy).tags()


def test_a_login_is_not_sent_where_it_can_be_read(proxy: Proxy, place: str, docker_home: Path) -> None:
    log_in(docker_home, proxy.host)
    elsewhere = {"WWW-Authenticate": 'Bearer realm="http://auth.example/token"'}
    proxy.faults = [Fault(status=401, headers=elsewhere)]
    with pytest.raises(SchedulerError, match=r"'http://auth\.example/token', which isn't encrypted"):
        through(proxy).tags()


def test_a_broken_helper_is_one_line_without_what_it_printed(
    locked_registry: RegistryServer, docker_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (docker_home / "config.json").write_text(json.dumps({"credsStore": "planted"}))
    for helper in ("", f"#!/bin/sh\necho {PASSWORD}\nexit 3\n", f"#!/bin/sh\necho {PASSWORD}\n"):
        if helper:
            program = tmp_path / "docker-credential-planted"
            program.write_text(helper)
            program.chmod(0o755)
            monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        with pytest.raises(MissingToolError) as caught:
            Registry(f"{locked_registry.host}/api/ucx").tags()
        assert str(docker_home / "config.json") in str(caught.value)
        assert PASSWORD not in str(caught.value)


def put_image(name: str, tag: str, architecture: str, authorization: str = "") -> bytes:
    """Store an image by the registry's own API and return its manifest."""
    layer = tar_of("gpubench/manifest.json", architecture.encode())
    config = {"architecture": architecture, "os": "linux", "config": {"Labels": {"for": architecture}}}
    blobs = [json.dumps(config).encode(), layer]
    for blob in blobs:
        host, _, repository = name.partition("/")
        start = request("POST", f"http://{host}/v2/{repository}/blobs/uploads/", b"", "", authorization)
        where = start.headers["Location"]
        request("PUT", f"{where}&digest={sha256(blob)}", blob, "application/octet-stream", authorization)
    rows = [{"mediaType": "application/x", "digest": sha256(blob), "size": len(blob)} for blob in blobs]
    document = json.dumps({"schemaVersion": 2, "mediaType": SINGLE, "config": rows[0], "layers": rows[1:]}).encode()
    put(name, f"manifests/{tag}", document, SINGLE, authorization)
    return document


def put(name: str, path: str, body: bytes, media_type: str, authorization: str = "") -> None:
    host, _, repository = name.partition("/")
    request("PUT", f"http://{host}/v2/{repository}/{path}", body, media_type, authorization)


def request(method: str, url: str, body: bytes, media_type: str, authorization: str) -> urllib.request.addinfourl:
    headers = {"Content-Type": media_type, **({"Authorization": authorization} if authorization else {})}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers, method=method), timeout=30) as answer:
        return answer
