"""What differs between the variants of a block is found, named, and told apart from what was planned."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from campaign_builder import QUICK, Writer, begin, make_plan, provenance, variant
from hypothesis import given
from hypothesis import strategies as st

from gpubench.model.plan import Plan
from gpubench.results.merge.environment_changes import (
    Change,
    Changes,
    PlannedEnvironment,
    find_changes,
    planned_environment,
    with_changes,
    with_oversubscription,
)
from gpubench.results.merge.evidence import evidence, noise
from gpubench.results.merge.family import cells, family
from gpubench.results.merge.provenance import facts
from gpubench.results.merge.table import sample_table
from gpubench.stats.data import CellRun, ComparisonInput
from gpubench.store.accounting import account

Provenance = dict[str, Any]

MACHINE = ("cpu_model", "cores", "memory", "kernel", "governor", "numa_nodes", "gpu_model", "gpu_driver")
SETTINGS = ("UCX_RNDV_THRESH", "UCX_IB_SL", "PATH", "LANG", "MALLOC_TRIM_THRESHOLD_")
NOISE = (
    *("load", "pid", "rank", "affinity", "veth7f"),
    *("HOME", "TMPDIR", "DASK_TEMPORARY_DIRECTORY", "GPUBENCH_CLUSTER", "GPUBENCH_CLOCK"),
)


def whole(host: str = "n1") -> Provenance:
    """A provenance with everything in it that can be compared."""
    plan = make_plan(blocks=1, suite=QUICK[:1])
    found = provenance(plan.jobs[0].blocks[0].runs[0], plan)
    for process in found["processes"]:
        process |= {"host": host, "cpus_near_gpu": "all"}
        process["ucx"]["env"] = {"UCX_TLS": "tcp", "UCX_RNDV_THRESH": "8192", "UCX_IB_SL": "0"}
    found["nodes"][0] |= {
        "host": host,
        "numa_nodes": 1,
        "governor": "performance",
        "gpu_model": "4 x NVIDIA A100-SXM4-40GB",
        "gpu_driver": "550.54.15",
        "network": {"eth0": {"speed": "10000", "mtu": "1500"}, "lo": {"speed": "", "mtu": "65536"}},
        "environment": {"PATH": "/usr/bin", "LANG": "C", "MALLOC_TRIM_THRESHOLD_": "65536", "HOME": "/scratch/1"},
    }
    return found


def changed(field: str, found: Provenance, value: str = "other") -> Provenance:
    """The same provenance with one field changed everywhere it is said."""
    found = copy.deepcopy(found)
    processes, nodes = found["processes"], found["nodes"]
    section, _, name = field.partition(".")
    for node in nodes:
        if field == "hosts":
            node["host"] = value
        elif field in MACHINE:
            node[field] = value
        elif section == "network":
            interface, kind = name.split(".")
            node["network"][interface][kind] = value
        elif section == "environment" and not name.startswith("UCX_"):
            node["environment"][name] = value
    for process in processes:
        if field in ("python", "node_half", "cpus_near_gpu"):
            process[field] = value
        elif section == "versions":
            process["versions"][name] = value
        elif section == "environment" and name.startswith("UCX_"):
            process["ucx"]["env"][name] = value
    return found


FIELDS = (
    "python",
    "node_half",
    "cpus_near_gpu",
    "versions.dask",
    "hosts",
    *MACHINE,
    "network.eth0.speed",
    "network.eth0.mtu",
    *(f"environment.{name}" for name in SETTINGS),
)


def noisy(name: str, found: Provenance, number: int) -> Provenance:
    """The same provenance with something else in it that never stands still."""
    found = copy.deepcopy(found)
    for process in found["processes"]:
        if name in ("pid", "rank", "affinity"):
            process[name] = number
    for node in found["nodes"]:
        if name == "load":
            node["load"] = [{"t": 1.0, "load1": number / 7, "steal": float(number), "busy": 3.0}]
        elif name == "veth7f":
            node["network"][f"veth{number}"] = {"speed": "10000", "mtu": str(number)}
        elif name.isupper():
            node["environment"][name] = f"/scratch/{number}"
    return found


def pairs_of(blocks: int) -> ComparisonInput:
    """Complete pairs named a0 b0, a1 b1, ..."""
    runs = [
        CellRun(f"{side}{block}", block, label, None, None, (1.0, 1.0), "ok")
        for block in range(blocks)
        for side, label in (("a", "1.17.0"), ("b", "1.19.0"))
    ]
    return ComparisonInput({"workload": "merge", "nodes": 1}, "1.17.0", "1.19.0", runs, blocks)


def between(before: Provenance, after: Provenance, plan: Plan | None = None, **expected: Any) -> list[Change]:
    """What one block with these two runs shows."""
    planned = planned_environment(plan or make_plan(), expected.get("manifests", {}))
    sides = {
        label: dataclasses.replace(side, by_binding=expected.get("known", {}).get(label, {}))
        for label, side in planned.sides.items()
    }
    allowed = dataclasses.replace(planned, sides=sides)
    return list(found_in([pairs_of(1)], {"a0": before, "b0": after}, allowed).by_comparison[0])


def found_in(comparisons: list[ComparisonInput], found: dict[str, Provenance], expected: PlannedEnvironment) -> Changes:
    """The changes between runs with such provenance."""
    return find_changes(comparisons, {run: facts(one) for run, one in found.items()}, expected)


@pytest.mark.parametrize(
    "name", ["br-1f", "cali1", "cni0", "docker0", "flannel.1", "lxcbr0", "tap0", "veth7f", "virbr0", "vnet0"]
)
def test_an_interface_of_other_peoples_containers_is_no_difference_and_one_of_the_node_is(name: str) -> None:
    def with_interface(called: str) -> Provenance:
        found = copy.deepcopy(whole())
        found["nodes"][0]["network"][called] = {"speed": "10000", "mtu": "1500"}
        return found

    assert not between(whole(), with_interface(name))
    assert between(whole(), with_interface(f"x{name}"))


@given(
    st.sets(st.sampled_from(FIELDS)),
    st.dictionaries(st.sampled_from(NOISE), st.integers(1, 9999)),
    st.integers(2, 6),
    st.data(),
)
def test_exactly_the_changed_fields_are_named_among_noise(
    fields: set[str], noise: dict[str, int], blocks: int, data: st.DataObject
) -> None:
    where = data.draw(st.sampled_from(range(blocks)))
    found: dict[str, Provenance] = {}
    for block in range(blocks):
        before = changed("environment.LANG", changed("hosts", whole(), f"n{block}"), f"C{block}")
        after = before
        for field in fields if block == where else ():
            after = changed(field, after)
        for name, number in noise.items():
            before, after = noisy(name, before, number), noisy(name, after, number + 1)
        found |= {f"a{block}": before, f"b{block}": after}
    expected = planned_environment(make_plan(), {})
    changes = found_in([pairs_of(blocks)], found, expected)
    assert {change.field for change in changes.by_comparison[0]} == set(changes.values) == fields
    assert all(change.why == "" for change in changes.by_field())
    named = with_changes([pairs_of(blocks)], changes)[0].changed
    assert set(named) == fields
    assert all(values.endswith("→ other") for values in named.values())


@given(st.sampled_from(FIELDS), st.integers(1, 5))
def test_a_block_in_other_circumstances_is_no_change_with_the_variant(field: str, blocks: int) -> None:
    found = {}
    for block in range(blocks):
        both = changed(field, whole(), f"value {block}")
        found |= {f"a{block}": both, f"b{block}": both}
    assert found_in([pairs_of(blocks)], found, planned_environment(make_plan(), {})) == Changes([()])


@pytest.mark.parametrize(
    ("env", "name", "old", "new", "why"),
    [
        ({"UCX_IB_SL": "1"}, "UCX_IB_SL", None, "1", "planned"),
        ({"UCX_IB_SL": "1"}, "UCX_IB_SL", "0", "2", ""),  # another value than the variant sets
        ({"PATH": ""}, "PATH", None, "", "planned"),
        ({"OMP_NUM_THREADS": "2"}, "OMP_NUM_THREADS", "1", "2", "planned"),  # every process gets one by default
        # ucxx 0.45.1 sets 8192 in every process where nobody names it.
        ({"UCX_RNDV_THRESH": "inf"}, "UCX_RNDV_THRESH", "8192", "inf", "planned"),
        ({"UCX_RNDV_THRESH": "inf"}, "UCX_RNDV_THRESH", "8192", "1024", ""),
        ({}, "UCX_RNDV_THRESH", "8192", "inf", ""),
    ],
)
def test_what_a_variant_sets_itself_is_planned(
    env: Mapping[str, str], name: str, old: str | None, new: str, why: str
) -> None:
    plan = make_plan((variant("1.17.0"), variant("1.19.0", "1.17.0", env)))
    before, after = whole(), changed(f"environment.{name}", whole(), new)
    if old is None:
        for places in (before["processes"], before["nodes"]):
            for place in places:
                place.get("ucx", {}).get("env", {}).pop(name, None)
                place.get("environment", {}).pop(name, None)
    else:
        before = changed(f"environment.{name}", before, old)
    assert [change.why for change in between(before, after, plan)] == [why]


def test_what_the_images_set_is_planned() -> None:
    old, new = variant("1.17.0"), variant("1.19.0")
    images = [
        one.model_copy(update={"image": one.image.model_copy(update={"env": {"LD_LIBRARY_PATH": f"/ucx/{one.label}"}})})
        for one in (old, new)
        if one.image
    ]
    before, after = (changed("environment.LD_LIBRARY_PATH", whole(), f"/ucx/{one.label}") for one in images)
    assert [change.why for change in between(before, after, make_plan(images))] == ["planned"]
    assert [change.why for change in between(before, after)] == [""]


def test_a_side_whose_gpu_workers_lacked_the_cpus_near_their_gpus_differs_from_one_whose_had_them() -> None:
    less = copy.deepcopy(whole())
    less["processes"][-1]["cpus_near_gpu"] = "none"
    assert between(whole(), less) == [Change("cpus_near_gpu", "all", "all, none", "")]


def bound(value: str | None) -> Provenance:
    """As a binding leaves it that may set UCX_PROTO_ENABLE."""
    return changed("environment.UCX_PROTO_ENABLE", whole(), value) if value else whole()


@pytest.mark.parametrize(
    ("variables", "old", "new", "why"),
    [
        ({}, "n", None, ["known"]),
        ({}, "y", None, [""]),
        ({}, None, "n", [""]),
        ({"UCX_PROTO_ENABLE": "y"}, "n", "y", ["known"]),
        ({"UCX_PROTO_ENABLE": "n"}, "n", "n", []),
    ],
)
def test_what_the_binding_is_known_to_set_is_told_apart_from_the_rest(
    variables: Mapping[str, str], old: str | None, new: str | None, why: list[str]
) -> None:
    plan = make_plan((variant("1.17.0"), variant("1.19.0", env=variables)))
    known = {"1.17.0": {"UCX_PROTO_ENABLE": "n"}, "1.19.0": {}}
    changes = between(bound(old), bound(new), plan, known=known)
    assert [change.why for change in changes] == why
    assert [change.field for change in changes] == ["environment.UCX_PROTO_ENABLE"] * len(why)


@pytest.mark.parametrize(
    ("package", "field", "planned"),
    [
        ("dask", "versions.dask", True),
        ("dask-cuda", "versions.dask_cuda", True),
        ("dask-cuda", "versions.dask", False),
        ("dask-cudf-cu12", "versions.dask", False),
        ("distributed-ucxx-cu12", "versions.distributed_ucxx", True),
        ("cupy-cuda12x", "versions.cupy", True),
        ("ucx-py-cu12", "versions.ucp", True),
        ("numpy", "kernel", False),
        ("numpy", "python", False),
    ],
)
def test_only_what_the_manifests_say_differs_is_planned(package: str, field: str, planned: bool) -> None:
    plan = make_plan()
    manifests = {
        one.image.manifest: {"stack": {"python": "3.11.7", "packages": {package: one.label, "toolz": "1.0"}}}
        for one in plan.variants
        if one.image
    }
    changes = between(changed(field, whole(), "1.0"), changed(field, whole(), "2.0"), plan, manifests=manifests)
    assert [(change.field, change.why) for change in changes] == [(field, "planned" if planned else "")]


@pytest.mark.parametrize(("named", "why"), [("3.12.1", "planned"), ("3.11.7", "")])
def test_another_python_is_planned_only_where_the_manifests_name_it(named: str, why: str) -> None:
    plan = make_plan()
    old, new = (one.image.manifest for one in plan.variants if one.image)
    manifests = {
        old: {"stack": {"python": "3.11.7"}, "ucx": "1.17.0"},
        new: {"stack": {"python": named}, "ucx": "1.19.0"},
    }
    changes = between(whole(), changed("python", whole(), "3.12.1"), plan, manifests=manifests)
    assert changes == [Change("python", "3.11.7", "3.12.1", why)]


def test_nodes_are_compared_host_by_host() -> None:
    def on(**kernels: str) -> Provenance:
        found = whole()
        found["nodes"] = [dict(found["nodes"][0], host=host, kernel=kernel) for host, kernel in kernels.items()]
        return found

    assert between(on(n1="6.1", n2="6.2"), on(n2="6.2", n1="6.1")) == []
    assert between(on(n1="6.1", n2="6.2"), on(n1="6.1", n2="6.1")) == [
        Change("kernel", "6.1 on n1, 6.2 on n2", "6.1", "")
    ]
    assert [change.before for change in between(on(n1="6.1", n2="6.2"), on(n1="6.2", n2="6.1"))] == [
        "6.1 on n1, 6.2 on n2"
    ]
    assert between(on(n1="6.1", n2="6.1"), on(n1="6.1", n3="6.1")) == [Change("hosts", "n1, n2", "n1, n3", "")]


def test_a_variable_that_only_some_hosts_have_is_said_with_them() -> None:
    both = whole()
    both["nodes"].append(dict(copy.deepcopy(both["nodes"][0]), host="n2"))
    one = copy.deepcopy(both)
    del one["nodes"][1]["environment"]["LANG"]
    assert between(both, one) == [Change("environment.LANG", "C on n1 and n2", "C on n1", "")]


def test_variables_of_a_node_that_ended_before_its_last_report_are_not_compared() -> None:
    both = whole()
    both["nodes"].append(dict(copy.deepcopy(both["nodes"][0]), host="n2"))
    both["nodes"][1]["environment"]["ONLY_THERE"] = "1"
    after = copy.deepcopy(both)
    del after["nodes"][1]["environment"]
    assert between(both, after) == between(after, both) == []
    after["nodes"][0]["environment"]["LANG"] = "de"
    after["nodes"][1]["kernel"] = "7.0"
    for process in after["processes"]:
        process["ucx"]["env"]["UCX_IB_SL"] = "1"
    assert {change.field for change in between(both, after)} == {
        *("environment.LANG", "environment.UCX_IB_SL", "kernel")
    }


def test_variables_of_processes_that_ended_before_they_reported_are_not_compared() -> None:
    before = whole()
    for place in (*(process["ucx"]["env"] for process in before["processes"]), before["nodes"][0]["environment"]):
        place["UCXPY_PROGRESS_MODE"] = "thread"
    crashed = copy.deepcopy(before) | {"processes": []}
    assert between(before, crashed) == between(crashed, before) == []
    for process in before["processes"]:
        process["ucx"]["env"]["UCXPY_PROGRESS_MODE"] = "polling"
    other = copy.deepcopy(crashed) | {"processes": copy.deepcopy(before["processes"])}
    del other["processes"][0]["ucx"]["env"]["UCXPY_PROGRESS_MODE"], other["nodes"][0]["environment"]["LANG"]
    assert [(change.field, change.before) for change in between(before, other)] == [("environment.LANG", "C")]
    of_both = facts(before).text("environment.UCXPY_PROGRESS_MODE", hosts=True)
    assert of_both == "polling, thread on n1"


def test_an_interface_that_went_is_a_change_and_an_unset_variable_too() -> None:
    after = whole()
    del after["nodes"][0]["network"]["eth0"], after["nodes"][0]["environment"]["LANG"]
    assert between(whole(), after) == [
        Change("environment.LANG", "C", "unset", ""),
        Change("network.eth0.mtu", "1500", "absent", ""),
        Change("network.eth0.speed", "10000", "absent", ""),
    ]


def drop(*path: str | int) -> Callable[[Provenance], None]:
    def without(found: Provenance) -> None:
        here: Any = found
        for key in path[:-1]:
            here = here[key]
        del here[path[-1]]

    return without


@pytest.mark.parametrize(
    "hole",
    [
        drop("nodes"),
        drop("processes"),
        drop("nodes", 0, "network"),
        drop("nodes", 0, "environment"),
        drop("nodes", 0, "kernel"),
        dict.clear,
    ],
)
def test_what_is_not_recorded_has_not_changed(hole: Callable[[Provenance], None]) -> None:
    after = whole()
    hole(after)
    assert between(whole(), after) == []
    assert between(after, whole()) == []


def test_a_library_that_one_side_has_not_imported_is_no_change() -> None:
    assert between(whole(), changed("versions.numpy", whole())) == []
    assert not facts(whole()).knows("versions.numpy")


def test_only_complete_pairs_that_count_are_compared() -> None:
    other = changed("kernel", whole())
    found = {"a0": whole(), "b0": whole(), "a1": whole(), "b1": other}
    expected = planned_environment(make_plan(), {})
    changes = found_in([pairs_of(2), pairs_of(1)], found, expected)
    assert [len(one) for one in changes.by_comparison] == [1, 0]
    assert changes.values == {"kernel": ["6.1.0", "6.1.0 or other"]}
    assert found_in([pairs_of(2)], found | {"b1": {}}, expected) == Changes([()])


def test_allowed_fields_are_kept_but_do_not_block() -> None:
    found = {"a0": whole(), "b0": changed("network.eth0.mtu", changed("kernel", whole()), "9000")}
    changes = found_in([pairs_of(1)], found, planned_environment(make_plan(), {}, ("network.*", "ker")))
    assert [(change.field, change.why) for change in changes.by_comparison[0]] == [
        ("kernel", ""),
        ("network.eth0.mtu", "allowed"),
    ]
    assert with_changes([pairs_of(1)], changes)[0].changed == {"kernel": "6.1.0 → other"}


def test_a_workload_that_failed_in_the_changed_run_is_untouched_by_it(tmp_path: Path) -> None:
    campaign = begin(tmp_path / "c", make_plan(blocks=2, suite=QUICK[3:]))
    writer, rows = Writer(campaign), list(campaign.rows())
    failed, fine = (one.params_id for one in campaign.plan.workloads)
    for number, row in enumerate(rows):
        writer.write(*row, failed={failed: "wrong"} if number == 0 else {})
    outcomes = account(campaign).outcomes
    table = cells(campaign.plan, outcomes, sample_table(outcomes))
    found = {row[2].run: changed("kernel", whole()) if number == 0 else whole() for number, row in enumerate(rows)}
    comparisons = family(campaign.plan, table)
    changes = found_in(comparisons, found, planned_environment(campaign.plan, campaign.manifests()))
    assert {one.key["params_id"]: len(some) for one, some in zip(comparisons, changes.by_comparison, strict=True)} == {
        failed: 0,
        fine: 1,
    }


def test_the_slowest_worker_is_held_against_the_median_of_its_probe() -> None:
    probes = [{"name": "w0", "wall_s": [1.0, 2.0]}, {"name": "w1", "wall_s": [1.5, 5.0]}, {"wall_s": [1.0, 2.0]}]
    assert noise({"speed": probes})["slowest"] == 2.5
    assert noise({"speed": [{"wall_s": [1.0]}, {"wall_s": [1.0]}, {"wall_s": [3.0]}]})["slowest"] == 3.0
    assert "slowest" not in noise({"speed": []})


def test_what_proves_the_library_and_the_transport_is_kept_and_never_compared() -> None:
    one, other = whole(), whole()
    other["processes"][0]["ucx"] |= {"loaded": "1.0", "path": "/elsewhere"}
    other["transport"] = {"observed": ["sm", "rc"], "lanes": [], "carriers": []}
    assert facts(other).text("transport.observed") == "rc, sm"
    assert facts(other).text("transport.carriers").startswith("not proved")
    assert not list(facts(one).differing(facts(other)))


def test_a_run_is_oversubscribed_where_more_processes_poll_than_their_host_has_cores() -> None:
    several = whole()
    two = several | {"processes": several["processes"][:2]}
    assert evidence(several, None, "ucx").oversubscribed
    assert not evidence(two, None, "ucx").oversubscribed
    assert not evidence(several, None, "tcp").oversubscribed
    assert not evidence({}, None, "ucx").oversubscribed


def test_a_comparison_with_one_oversubscribed_run_says_so() -> None:
    runs = [CellRun(f"{variant}1", 1, variant, 0, None, (1.0,), "ok") for variant in "AB"]
    given = [ComparisonInput({"workload": name}, "A", "B", runs, 1) for name in "xy"]
    assert [one.oversubscribed for one in with_oversubscription(given, {"B1"})] == [True, True]
    assert [one.oversubscribed for one in with_oversubscription(given, {"C1"})] == [False, False]


def test_what_the_nodes_recorded_each_second_is_joined() -> None:
    two = {"nodes": [whole("n1")["nodes"][0], whole("n2")["nodes"][0]]}
    for node, loads in zip(two["nodes"], ((0.5, 1.5), (2.5,)), strict=True):
        node["load"] = [{"t": 0.0, "load1": load, "busy": 1.0, "steal": 0.0} for load in loads]
    found = evidence(two, None, "tcp")
    assert (found.noise["load"], found.noise["busy"]) == (1.5, 1.0)
    assert {host: loads["load"] for host, loads in found.by_host.items()} == {"n1": 1.0, "n2": 2.5}
    two["nodes"][0]["load"] = []
    assert evidence(two, None, "tcp").by_host["n1"] == {}


@pytest.mark.parametrize("odd", [{"nodes": [3]}, {"nodes": {}}, {"processes": [{}]}, {"speed": 3}, {"transport": []}])
def test_a_provenance_that_somebody_has_edited_stops_no_report(odd: dict[str, Any]) -> None:
    found = evidence(odd, None, "ucx")
    assert (found.noise, found.facts.values, found.oversubscribed) == ({}, {}, False)
