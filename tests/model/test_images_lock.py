"""``images.lock.toml``: rows by place, the newest wins, the same rows give the same bytes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.errors import DataError, UsageError
from gpubench.model.images_lock import ImagesLock, LockRow
from gpubench.model.secrets import holds_secret, is_secret


def row(**changes: Any) -> LockRow:
    plain: dict[str, Any] = {
        "kind": "docker",
        "spec": "v1.14.x",
        "site": "draco",
        "registry": "registry.example:5000/team/bench",
        "date": "20261107",
        "tag": "ucx-py-v1.14.x-20261107",
        "digest": "sha256:" + "1" * 64,
        "build_id": "b1",
        "ucx_version": "1.14.1",
        "ucx_commit": "c" * 40,
        "binding": "ucx-py",
        "stack": "ucx-py-0.29",
        "python": "/opt/gpubench/stack/bin/python",
        "env": {"LD_LIBRARY_PATH": "/opt/gpubench/ucx/lib"},
        "document": {"stack": {"packages": {"dask": "2025.7.0"}}},
        "architecture": "x86_64",
    }
    return LockRow(**{**plain, **changes})


texts = st.text(max_size=12).filter(lambda text: not holds_secret(text))
rows = st.builds(
    row,
    spec=texts,
    site=texts,
    registry=texts,
    date=st.sampled_from(["20261107", "20261108"]),
    digest=texts,
    env=st.dictionaries(texts, texts, max_size=3).filter(lambda env: not any(map(is_secret, env, env.values()))),
)


@given(st.lists(rows, max_size=5))
def test_what_is_written_is_what_is_read(some: list[LockRow]) -> None:
    lock = ImagesLock().with_rows(some)
    assert ImagesLock.parse(lock.dump(), "images.lock.toml") == lock


@given(st.lists(rows, max_size=5), st.randoms())
def test_the_order_in_which_rows_come_changes_no_byte(some: list[LockRow], random: Any) -> None:
    once = list({one.place: one for one in some}.values())
    shuffled = random.sample(once, len(once))
    assert ImagesLock().with_rows(shuffled).dump() == ImagesLock().with_rows(once).dump()


def test_a_new_row_takes_the_place_of_the_old_one_and_leaves_the_others() -> None:
    other_day = row(date="20261108", digest="sha256:" + "2" * 64)
    moved = row(digest="sha256:" + "3" * 64)
    lock = ImagesLock().with_rows([row(), other_day]).with_rows([moved])
    assert [one.digest for one in lock.image] == [moved.digest, other_day.digest]


def test_a_spec_means_the_newest_build_of_its_site_unless_a_date_is_named() -> None:
    new = row(date="20261108", digest="sha256:" + "2" * 64)
    lock = ImagesLock().with_rows([new, row(), row(site="deepops", date="20261109")])
    assert lock.find(kind="docker", spec="v1.14.x", site="draco") == new
    assert lock.find(kind="docker", spec="v1.14.x", site="draco", date="20261107") == row()
    assert lock.find(kind="docker", spec="v1.14.x", site="draco", date="20261101") is None
    assert lock.find(kind="docker", spec="1.14", site="draco") is None


def test_of_one_day_the_pushed_image_wins_over_the_local_one() -> None:
    local = row(registry="", digest="sha256:" + "4" * 64)
    lock = ImagesLock().with_rows([local, row()])
    assert lock.find(kind="docker", spec="v1.14.x", site="draco") == row()


def test_a_build_that_came_after_the_pushed_one_of_a_day_is_meant_until_it_or_another_is_pushed() -> None:
    local = row(registry="", build_id="b2", digest="sha256:" + "5" * 64)
    elsewhere = [row(registry="", build_id="b2", site="deepops"), row(registry="", build_id="b2", date="20261106")]
    lock = ImagesLock().with_rows([row(), *elsewhere]).with_rows([local])
    assert lock.find(kind="docker", spec="v1.14.x", site="draco") == local
    assert lock.find(kind="docker", spec="v1.14.x", site="draco", pushed=True) == row()
    for build in ("b2", "b3"):
        pushed = row(build_id=build, digest="sha256:" + "6" * 64)
        after = lock.with_rows([pushed])
        assert after.find(kind="docker", spec="v1.14.x", site="draco") == pushed
        assert local not in after.image
        assert [one for one in after.image if one in elsewhere] == [one for one in lock.image if one in elsewhere]


def test_an_unknown_key_names_the_file_the_key_and_the_nearest() -> None:
    text = ImagesLock().with_rows([row()]).dump().replace("digest =", "digst =")
    with pytest.raises(
        UsageError, match=r"images\.lock\.toml: unknown key 'image\.0\.digst' \(did you mean 'digest'\?\)"
    ):
        ImagesLock.parse(text, "images.lock.toml")


def test_another_schema_is_bad_data_and_says_what_to_do() -> None:
    with pytest.raises(DataError, match="is not a gpubench/images-lock/1; remove it, and run gpubench images list"):
        ImagesLock.parse('schema = "gpubench/images-lock/9"', "images.lock.toml")
