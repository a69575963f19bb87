import pytest

from gpubench.node.workloads.catalogue import CATALOGUE
from gpubench.results.merge.moved import cannot_change, moved_bytes


@pytest.mark.parametrize(
    ("workload", "details", "moved"),
    [
        ("mine.py:join", {"seen_bytes": 5376, "least_moved_bytes": 0}, 896),
        ("read-parquet", {"seen_bytes": 0, "least_moved_bytes": 0}, 0),
        ("merge", {"seen_bytes": 5376, "least_moved_bytes": 5000}, None),  # it says itself what it must move
        ("tasks", {"seen_bytes": 0, "least_moved_bytes": 0}, None),  # its messages to the scheduler aren't counted
        ("mine.py:join", {}, None),
    ],
)
def test_bytes_of_a_repetition_between_workers(workload, details, moved):
    assert moved_bytes(workload, "dask", {}, details, 6) == moved


@pytest.mark.parametrize(
    ("workload", "backend", "params", "moved"),
    [
        ("merge", "explicit-comms", {}, None),
        ("merge", "dask", {}, 0),
        ("shuffle", "dask", {"method": "p2p"}, None),
        ("shuffle", "dask", {"method": "disk"}, None),
        ("shuffle", "dask", {"method": "tasks"}, 0),
        ("weak-frame-sort", "dask", {"shuffle": "default"}, None),
        ("weak-frame-sort", "dask", {"shuffle": "tasks"}, 0),
    ],
)
def test_how_much_moves_past_dasks_logs_is_not_known(workload, backend, params, moved):
    whole = {name: param.default for name, param in CATALOGUE[workload].params.items()} | params
    details = {"seen_bytes": 0, "least_moved_bytes": 0}
    assert moved_bytes(workload, backend, whole, details, 6) == moved


def test_of_an_own_workload_dask_itself_may_have_moved_data_past_its_logs():
    assert cannot_change("read-parquet") == "UCX cannot change this"
    assert cannot_change("mine.py:join").startswith("UCX cannot change this, unless")
