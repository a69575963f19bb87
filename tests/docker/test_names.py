"""Names as Docker reads them."""

import pytest

from gpubench.errors import PlanRefusedError, UsageError
from gpubench.images.docker.names import Repository, is_loopback, require_architecture, split_reference

DIGEST = f"sha256:{'a' * 64}"


@pytest.mark.parametrize(
    ("text", "name", "api"),
    [
        ("registry.example:5000/team/ucx", "registry.example:5000/team/ucx", "https://registry.example:5000/v2/"),
        ("http://registry.example:5000/ucx", "registry.example:5000/ucx", "http://registry.example:5000/v2/"),
        ("127.0.0.1:5000/ucx", "127.0.0.1:5000/ucx", "http://127.0.0.1:5000/v2/"),
        ("localhost/ucx", "localhost/ucx", "http://localhost/v2/"),
        ("[::1]:5000/ucx", "[::1]:5000/ucx", "http://[::1]:5000/v2/"),
        ("debian", "docker.io/library/debian", "https://registry-1.docker.io/v2/"),
        ("team/ucx", "docker.io/team/ucx", "https://registry-1.docker.io/v2/"),
        ("index.docker.io/team/ucx", "docker.io/team/ucx", "https://registry-1.docker.io/v2/"),
    ],
)
def test_a_repository_is_read_as_docker_reads_it(text: str, name: str, api: str) -> None:
    repository = Repository.parse(text)
    assert (repository.name, repository.api) == (name, api)


@pytest.mark.parametrize("text", ["", "host.example/", "host.example/Team", "ftp://host/ucx", "a b", "host.io/x:1"])
def test_what_is_no_repository_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match=r"is no repository of a registry; write HOST"):
        Repository.parse(text)


@pytest.mark.parametrize("address", ["https://me:planted@host.example/ucx", "me:planted@host.example/ucx"])
def test_a_login_in_an_address_is_refused_and_not_printed(address: str) -> None:
    with pytest.raises(UsageError, match=r"host\.example/ucx' is no repository .*docker login") as refused:
        Repository.parse(address)
    assert "planted" not in str(refused.value)


def test_a_tag_and_a_digest_are_joined_each_in_its_way() -> None:
    repository = Repository.parse("host.example/ucx")
    assert repository.at("v1") == "host.example/ucx:v1"
    assert repository.at(DIGEST) == f"host.example/ucx@{DIGEST}"


def test_the_port_of_a_host_is_no_tag() -> None:
    assert split_reference("host:5000/ucx") == ("host:5000/ucx", "")
    assert split_reference("host:5000/ucx:v1") == ("host:5000/ucx", "v1")
    assert split_reference(f"host:5000/ucx@{DIGEST}") == ("host:5000/ucx", DIGEST)
    assert split_reference("ucx:v1") == ("ucx", "v1")


def test_only_this_machine_is_asked_without_encryption() -> None:
    assert all(map(is_loopback, ["localhost:1", "127.0.0.1", "127.9.9.9:5000", "[::1]:5000"]))
    assert not any(map(is_loopback, ["10.0.0.1", "localhost.example", "registry:5000"]))


def test_another_architecture_is_refused() -> None:
    require_architecture("x86_64", "x86_64", "image a")
    with pytest.raises(PlanRefusedError, match="image a is for x86_64, the site's nodes are aarch64"):
        require_architecture("x86_64", "aarch64", "image a")
