"""What a job brings whose runs start pods of their own: an account, its rights, and what the client must know."""

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from gpubench.model.plan import Plan
from tests.plan.test_block_pods import parsl
from tests.render.test_object_files import EVERYTHING, RELEASES, TEMPLATES, objects, planned, pod_of
from tests.rendering import check_golden, render_jobs

GOLDEN = Path(__file__).parents[1] / "golden" / "block-pods"
RIGHTS = ["ServiceAccount", "Role", "RoleBinding"]


def with_pods(*settings: str, **changes: Any) -> Plan:
    return planned(*settings, workloads=[parsl("kubernetes")], **changes)


def test_a_job_with_rights_and_the_spec_of_a_run_are_the_golden_ones() -> None:
    made = with_pods("node.cores=2", "node.memory=3GiB", nodes=[1], blocks=1)
    files = render_jobs(made, made.jobs, TEMPLATES, b"the packed node half")
    found = {"job.yaml": files["jobs/j001-n1/job.yaml"]}
    (found["run-0.json"],) = [data for name, data in files.items() if "/specs/001-0-" in name]
    for name, data in found.items():
        check_golden(GOLDEN / name, data.decode())
    assert {path.name for path in GOLDEN.iterdir()} == set(found)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("settings", [(), EVERYTHING], ids=["as-shipped", "everything"])
def test_every_object_is_valid_in_the_strictest_reading_of_a_release(settings: tuple[str, ...], release: str) -> None:
    for found in objects(with_pods(*settings)):
        for one in found:
            kubernetes_validate.validate(one, release, strict=True)


def test_the_account_may_do_four_things_with_pods_and_nothing_else() -> None:
    for found in objects(with_pods()):
        account, role, binding, *others = found
        assert [one["kind"] for one in (account, role, binding)] == RIGHTS
        assert role["rules"] == [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "get", "list", "delete"]}
        ]
        (subject,) = binding["subjects"]
        assert (
            {subject["name"], binding["roleRef"]["name"]}
            == {account["metadata"]["name"]}
            == {others[0]["metadata"]["name"]}
        )
        pod = pod_of(found)
        assert (pod["serviceAccountName"], pod["automountServiceAccountToken"]) == (account["metadata"]["name"], True)


def test_an_account_of_the_profile_is_taken_as_it_is_and_a_job_without_such_a_workload_has_no_token() -> None:
    for found in objects(with_pods("kubernetes.service_account=bench")):
        assert not set(RIGHTS) & {one["kind"] for one in found}
        assert (pod_of(found)["serviceAccountName"], pod_of(found)["automountServiceAccountToken"]) == ("bench", True)
    for found in objects(planned()):
        assert not set(RIGHTS) & {one["kind"] for one in found}
        assert pod_of(found)["automountServiceAccountToken"] is False
