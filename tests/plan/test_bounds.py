"""What no machine has is refused by its numbers alone."""

import tomllib

import pytest
from requests_by_hand import plan, site

from gpubench.errors import DataError, PlanRefusedError, UsageError
from gpubench.model.plan import Plan
from gpubench.model.site import Site
from tests.conftest import ROOT

LOCAL = (ROOT / "sites" / "local.toml").read_text()
GOLDEN = (ROOT / "tests" / "golden" / "schemas" / "1" / "campaign" / "plan.json").read_text()


def test_more_gpu_workers_than_a_node_has_gpus_are_refused() -> None:
    of_two = site("[node]\ngpus = 2\n", device="gpu", env={})
    with pytest.raises(
        PlanRefusedError, match=r"4 workers per node, and 2 GPUs \(node\.gpus\): a worker takes one GPU"
    ):
        plan(site=of_two, workers=[2, 4])
    plan(site=of_two, workers=[1, 2])
    plan(site=site("[node]\ngpus = 2\n", device="cpu"), workers=[2, 4])


@pytest.mark.parametrize("name", ["a\nb", "eth0\x1b[31m", "x" * 16, "", "..", "a b", "eth\u202e0"])
def test_a_name_that_no_device_has_is_refused(name: str) -> None:
    with pytest.raises(PlanRefusedError, match="site bench: interface '"):
        plan(site=site(interface=name))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("limits", 'job = "0s"', "'limits.job' = '0s': not between 0.001 and"),
        ("limits", 'workload = "400d"', "'limits.workload' = '400d': '400d' is more than a year"),
        ("limits", "start = nan", "a quantity needs its unit"),
        ("batch", 'warning = "2d"', "'batch.warning' = '2d': not between 0 and 65 535"),
        ("node", "cores = 1e12", "'node.cores' = 1000000000000.0: not between"),
        ("node", 'memory = "2048PiB"', "more than 1 EiB, which no machine has"),
        ("defaults", "blocks = 1e9", "'defaults.blocks' = 1000000000.0: not between 1 and 100 000"),
        ("kubernetes", "port = 80", "greater than or equal to 1024"),
        ("kubernetes", "port = 1e6", "less than or equal to 65535"),
        ("kubernetes", "run_as_user = 1e12", "not between"),
        ("layout", "workers = inf", "finite"),
        ("layout", "threads = nan", "finite"),
    ],
)
def test_a_profile_with_an_absurd_number_is_refused_by_key(key: str, value: str, said: str) -> None:
    plain = tomllib.loads(LOCAL)
    plain[key] = {**plain.get(key, {}), **tomllib.loads(value)}
    with pytest.raises(UsageError) as caught:
        Site.of(plain, "mine.toml")
    assert said in str(caught.value)


def test_what_an_old_plan_says_stands_unless_it_is_no_number() -> None:
    old = GOLDEN.replace('"warning": 120.0', '"warning": 172800.0').replace('"blocks": 8', '"blocks": 1000000')
    assert Plan.parse(old, "plan.json").site.batch.warning == 172800
    with pytest.raises(DataError, match=r"plan\.json"):
        Plan.parse(GOLDEN.replace('"margin": 0.03', '"margin": NaN'), "plan.json")
