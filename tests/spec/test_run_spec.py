import dataclasses
import json
from typing import Any

import pytest

from gpubench.node.spec import RunSpec, WorkloadSpec
from gpubench.node.spec.plain import SpecError
from tests.node.specs_by_hand import run_spec


def changed(**changes: Any) -> str:
    return json.dumps({**json.loads(run_spec().dump()), **changes})


def test_a_run_spec_reads_back_as_it_was_written() -> None:
    spec = run_spec(nodes=2, env={"A": "ü \n"}, expect_transport=["tcp"])
    assert RunSpec.parse(spec.dump()) == spec
    assert spec.dump().endswith("}\n")


def test_the_file_is_the_same_bytes_for_the_same_spec() -> None:
    one = run_spec(env={"A": "1", "B": "2"})
    assert one.dump() == dataclasses.replace(one, env={"B": "2", "A": "1"}).dump()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "specs/1.json is not JSON"),
        (run_spec().dump()[:50], "specs/1.json is not JSON"),
        ("[]", "specs/1.json is not a gpubench/run-spec/1"),
        (changed(schema="gpubench/run-spec/2"), "specs/1.json is not a gpubench/run-spec/1"),
        (changed(novelty=1, age=2), "RunSpec has no field age, novelty"),
        (changed(workloads=None), "WorkloadSpec is not an object but None"),
        (changed(workloads=[1]), "WorkloadSpec is not an object but 1"),
        (changed(workloads=[{"name": "tasks"}]), "WorkloadSpec lacks backend, params, reps, warmup, timeout_s"),
        (changed(deadlines=5), "Deadlines is not an object but 5"),
        (changed(deadlines={"start": 5}), "Deadlines has no field start"),
    ],
)
def test_what_is_no_run_spec_is_said_in_one_line(text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        RunSpec.parse(text, "specs/1.json")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_missing_field_is_named_unless_it_has_a_default() -> None:
    plain = json.loads(run_spec().dump())
    del plain["rmm_pool"]
    assert RunSpec.parse(json.dumps(plain)) == run_spec()
    del plain["protocol"]
    with pytest.raises(SpecError, match=r"^RunSpec lacks protocol$"):
        RunSpec.parse(json.dumps(plain))


def test_workers_are_counted_over_all_nodes() -> None:
    assert run_spec(nodes=3, workers_per_node=4).workers == 12


def test_what_makes_samples_comparable_is_in_the_id_of_the_parameters_and_nothing_else() -> None:
    one = WorkloadSpec("merge", "dask", {"a": 1, "b": 2}, reps=3, warmup=1, timeout_s=9.0)
    same = WorkloadSpec("merge", "dask", {"b": 2, "a": 1}, reps=8, warmup=0, timeout_s=1.0)
    others = [
        dataclasses.replace(one, name="shuffle"),
        dataclasses.replace(one, backend="noop"),
        dataclasses.replace(one, params={"a": 1, "b": 3}),
    ]
    assert one.params_id == same.params_id
    assert len({one.params_id, *(other.params_id for other in others)}) == 4
