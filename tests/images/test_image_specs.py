"""What a typed UCX version means."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.errors import PlanRefusedError, UsageError
from gpubench.images.wheels import releases, resolve, wheels

PREFIXES = ["", "v", "ucx-", "ucx-v", "V", "UCX-"]


@pytest.mark.parametrize(
    ("spec", "version"),
    [
        ("1.17.0", "1.17.0.post1"),
        ("v1.16.0", "1.16.0.post2"),
        ("ucx-1.19.0", "1.19.0"),
        ("1.16.0.post1", "1.16.0.post1"),
        ("1.22", "1.22.0"),
    ],
)
def test_a_release_is_its_newest_wheel(spec: str, version: str) -> None:
    assert resolve(spec).version == version


@given(prefix=st.sampled_from(PREFIXES), wheel=st.sampled_from(wheels()), blanks=st.sampled_from(["", " "]))
def test_every_way_to_write_a_version_means_the_same(prefix: str, wheel, blanks: str) -> None:
    newest = [other for other in wheels() if other.release == wheel.release][-1]
    assert resolve(blanks + prefix + wheel.release) == newest
    if ".post" in wheel.version:
        assert resolve(prefix + wheel.version + blanks) == wheel


@given(st.text(max_size=12))
def test_whatever_is_typed_ends_in_a_wheel_or_a_refusal(text: str) -> None:
    with contextlib.suppress(UsageError, PlanRefusedError):
        assert resolve(text) in wheels()


def test_an_ambiguous_name_lists_what_it_may_mean() -> None:
    with pytest.raises(UsageError, match=r"'1\.18' is ambiguous; write one of 1\.18\.0, 1\.18\.1"):
        resolve("1.18")


@pytest.mark.parametrize(
    ("spec", "near"), [("1.18.2", "1.18.1"), ("1.12.0", "1.14.1"), ("2.0", "1.22.0"), ("1.19.0.post7", "1.19.0")]
)
def test_an_unknown_release_names_the_nearest(spec: str, near: str) -> None:
    with pytest.raises(
        UsageError, match=rf"there is no wheel of UCX '{spec}' \(nearest: {near}\); wheels exist of 1\.14\.1, "
    ):
        resolve(spec)


@pytest.mark.parametrize("spec", ["v1.14.x", "1.14.x", "master", "topic/rndv"])
def test_a_branch_needs_an_image_built_from_source(spec: str) -> None:
    with pytest.raises(PlanRefusedError) as refused:
        resolve(spec)
    assert "needs an image built from source" in str(refused.value)
    assert all(release in str(refused.value) for release in releases())


def test_another_architecture_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "ppc64le")
    with pytest.raises(
        PlanRefusedError, match="no wheel for linux on ppc64le; wheels exist for linux on aarch64 and x86_64"
    ):
        resolve("1.19.0").digest()
