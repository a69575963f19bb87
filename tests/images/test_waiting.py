"""What lets processes that wait sleep, where it is offered, and what refuses it."""

import pytest

from gpubench.errors import PlanRefusedError, UsageError
from gpubench.images.compatibility import event_environment, stacks, with_waiting
from gpubench.model.site import Site
from gpubench.node.spec.waiting import ASLEEP
from tests.plan.requests_by_hand import site


def waits(how: str, **changes: object) -> Site:
    layout = site().layout.model_copy(update={"waiting": how})
    return site(layout=layout, **changes)


def manifest(binding: str, version: str) -> dict[str, object]:
    return {"binding": {"name": binding, "version": version}}


def test_every_stack_that_can_wait_asleep_takes_the_same_variables_and_says_why_it_is_believed() -> None:
    rows = [row.event for row in stacks() if row.event]
    assert [row.env for row in rows] == [ASLEEP] * len(rows) != []
    assert event_environment() == ASLEEP
    assert all(row.source for row in rows)


@pytest.mark.parametrize("how", ["auto", "event"])
def test_the_environment_of_every_process_gets_them_only_where_asked_and_only_with_ucx(how: str) -> None:
    before = waits(how, env={"UCX_TLS": "tcp"})
    assert with_waiting(before, "ucx", {}) == waits("event", env={"UCX_TLS": "tcp", **ASLEEP})
    assert with_waiting(before, "tcp", {}).env == before.env
    assert with_waiting(site(), "ucx", {}) == site()


def test_a_profile_that_says_both_is_refused_and_one_that_leaves_it_open_is_not() -> None:
    env = {"UCXPY_PROGRESS_MODE": "polling"}
    said = "layout.waiting = event sets UCXPY_PROGRESS_MODE=thread, and env says polling"
    with pytest.raises(UsageError, match=said):
        with_waiting(waits("event", env=env), "ucx", {})
    assert with_waiting(waits("auto", env=env), "ucx", {}) == waits("default", env=env)


def test_a_binding_that_cannot_is_refused_by_name_or_left_to_poll() -> None:
    known = next(row for row in stacks() if row.event)
    images = {"1.17.0": manifest(known.binding, known.binding_version), "1.13.1": manifest("ucx-py", "0.35.00")}
    with pytest.raises(PlanRefusedError, match=r"processes of 1\.13\.1 would poll .* ucx-py 0\.35\.00 isn't known"):
        with_waiting(waits("event"), "ucx", images)
    assert with_waiting(waits("auto"), "ucx", images) == waits("default")
    assert with_waiting(waits("auto"), "ucx", {"1.17.0": images["1.17.0"]}).layout.waiting == "event"
    assert with_waiting(waits("event"), "tcp", images) == waits("event")
    assert with_waiting(site(), "ucx", images) == site()
