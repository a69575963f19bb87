"""Workloads whose processes run in pods of their own: on which sites, and with which images."""

from typing import Any

import pytest

from gpubench.errors import PlanRefusedError
from gpubench.node.spec import WorkloadSpec
from gpubench.node.workloads.catalogue import CATALOGUE
from gpubench.plan.block_pods import check_images_of_block_pods
from gpubench.resources.profiles import load_site
from tests.plan.requests_by_hand import plan, workload
from tests.workloads.running import complete


def parsl(provider: str, **params: Any) -> WorkloadSpec:
    given = complete("tasks", {"count": 5, "parsl_provider": provider, **params})
    return WorkloadSpec(name="tasks", backend="parsl", params=given, reps=1, warmup=0, timeout_s=60.0)


def test_pods_are_for_a_site_with_pods() -> None:
    with pytest.raises(PlanRefusedError, match=r'"kubernetes" starts pods .* scheduler local has none; take a site'):
        plan(workloads=[workload(), parsl("kubernetes")])
    assert plan(workloads=[parsl("local")]).workloads
    assert plan(workloads=[workload(), parsl("kubernetes")], site=load_site("kubernetes")).workloads


def test_an_image_without_the_packages_is_refused_by_its_name() -> None:
    images: dict[str, Any] = {
        "1.19.0": {"stack": {"packages": {"parsl": "2026.1", "kubernetes": "35.0.0"}}},
        "1.17.0": {"stack": {"packages": {"parsl": "2026.1"}}},
    }
    with pytest.raises(PlanRefusedError, match=r"that of 1\.17\.0 lacks kubernetes; build it again"):
        check_images_of_block_pods([parsl("kubernetes")], images)
    check_images_of_block_pods([parsl("slurm")], images)
    del images["1.17.0"]
    check_images_of_block_pods([parsl("kubernetes")], images)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"parsl_account": "me"}, 'parsl_account is for parsl_provider = "slurm"'),
        ({"clients": 2}, "with parsl_provider there is one client"),
        ({"parsl_config": "/a.py"}, "leave out parsl_provider"),
    ],
)
def test_parameters_that_do_not_go_with_it_are_refused(params: dict[str, Any], message: str) -> None:
    assert message in CATALOGUE["tasks"].fault("parsl", parsl("kubernetes", **params).params)
