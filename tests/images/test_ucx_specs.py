"""What a typed spec of a built image asks for."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.errors import PlanRefusedError, UsageError
from gpubench.images.ucx_specs import COMMIT, RequestedUcx, named, parse, wheel_of
from gpubench.images.wheels import releases, wheels

SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("spec", "asked", "release"),
    [
        ("1.16.0", RequestedUcx("release", "1.16.0"), "1.16.0"),
        ("v1.16.0", RequestedUcx("release", "1.16.0"), "1.16.0"),
        ("ucx-1.16.0", RequestedUcx("release", "1.16.0"), "1.16.0"),
        ("1.22", RequestedUcx("release", "1.22.0"), "1.22.0"),
        ("1.12.1", RequestedUcx("release", "1.12.1"), "1.12.1"),
        ("1.16.0.post1", RequestedUcx("release", "1.16.0.post1"), "1.16.0"),
        ("wheel:1.16.0", RequestedUcx("wheel", "1.16.0.post2"), "1.16.0"),
        ("v1.14.x", RequestedUcx("git", "v1.14.x"), "1.14"),
        ("1.14.x", RequestedUcx("git", "v1.14.x"), "1.14"),
        ("master", RequestedUcx("git", "master"), ""),
        ("topic/rndv", RequestedUcx("git", "topic/rndv"), ""),
        ("v1.17.0-rc2", RequestedUcx("git", "v1.17.0-rc2"), "1.17.0"),
        ("git:v1.16.0", RequestedUcx("git", "v1.16.0"), "1.16.0"),
        (f"v1.14.x@{SHA}", RequestedUcx("git", "v1.14.x", SHA), "1.14"),
        ("distribution", RequestedUcx("distribution"), ""),
        ("none", RequestedUcx("none"), ""),
    ],
)
def test_a_spec_asks_for_one_thing(spec: str, asked: RequestedUcx, release: str) -> None:
    assert parse(spec) == asked
    assert asked.release == release


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("1.18", r"'1\.18' is ambiguous; write three numbers like 1\.18\.0 or 1\.18\.1"),
        ("2.0", r"'2\.0' is no full release; write three numbers"),
        ("master@0123abc", r"'0123abc' is no full commit; write all 40"),
        ("master@", r"'' is no full commit"),
        (f"master@{SHA.upper()}", "is no full commit"),
        ("conda:1.16.0", r"'conda:' is no source of UCX; write wheel:VERSION or git:REF"),
        ("wheel:1.99.0", r"there is no wheel of UCX '1\.99\.0'"),
        ("wheel:master", r"'wheel:' is no source of UCX"),
        ("a..b", "is no version and no git ref"),
        ("-upload-pack=x", "is no version and no git ref"),
        ("master; rm -rf", "is no version and no git ref"),
        ("", "is no version and no git ref"),
    ],
)
def test_what_means_nothing_is_refused_in_one_line(spec: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse(spec)


@given(st.text(alphabet="v1.26xmaster:git@/-+_ \n\"'$\\;#wheel", max_size=16))
def test_whatever_is_typed_is_refused_or_safe_to_write_anywhere(text: str) -> None:
    with contextlib.suppress(UsageError, PlanRefusedError):
        asked = parse(text)
        assert not set(asked.name) & set(" \n\"'$\\;#:@`")
        assert not asked.name.startswith("-")
        assert not asked.commit or COMMIT.fullmatch(asked.commit)


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("1.16", "1.16.0"),
        ("v1.16.0", "1.16.0"),
        ("1.16.0", "1.16.0"),
        ("1.16,dask==2025.7.0", "1.16.0,dask==2025.7.0"),
        ("1.16.0.post1", "1.16.0.post1"),
        ("v1.14.x", "v1.14.x"),
        ("master", "master"),
        ("none", "none"),
        ("9.9", "9.9"),
    ],
)
def test_one_version_has_one_name_by_which_images_are_built_and_found(spec, name):
    assert named(spec) == name


@given(
    prefix=st.sampled_from(["", "v", "ucx-", "ucx-v", "V", "UCX-"]),
    wheel=st.sampled_from(wheels()),
    blanks=st.sampled_from(["", " "]),
)
def test_every_way_to_write_a_release_means_its_newest_wheel(prefix: str, wheel, blanks: str) -> None:
    newest = [other for other in wheels() if other.release == wheel.release][-1]
    assert wheel_of(blanks + prefix + wheel.release) == newest
    if ".post" in wheel.version:
        assert wheel_of(prefix + wheel.version + blanks) == wheel


@pytest.mark.parametrize(
    ("spec", "near"), [("1.18.2", "1.18.1"), ("1.12.0", "1.14.1"), ("1.19.0.post7", "1.19.0"), ("9.9.9", "1.22.0")]
)
def test_a_release_without_a_wheel_names_the_nearest(spec: str, near: str) -> None:
    says = rf"there is no wheel of UCX '{spec}' \(nearest: {near}\); wheels exist of 1\.14\.1, "
    with pytest.raises(UsageError, match=says):
        wheel_of(spec)


@pytest.mark.parametrize("spec", ["v1.14.x", "1.14.x", "master", "topic/rndv", "none", "distribution"])
def test_what_is_no_release_has_no_wheel(spec: str) -> None:
    with pytest.raises(PlanRefusedError, match=rf"UCX '{spec}' is no release") as refused:
        wheel_of(spec)
    assert all(release in str(refused.value) for release in releases())


def test_another_architecture_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "ppc64le")
    says = "no wheel for linux on ppc64le; wheels exist for linux on aarch64 and x86_64"
    with pytest.raises(PlanRefusedError, match=says):
        wheel_of("1.19.0").digest()
