"""Short names of cells: one of a thing is no plural."""

from gpubench.model.cell_names import cell_names


def test_one_node_worker_or_thread_is_singular_and_eleven_are_not() -> None:
    sizes = [(1, 1, 1), (11, 1, 2), (1, 21, 1)]
    keys = [
        {"workload": "merge", "nodes": nodes, "workers_per_node": workers, "threads_per_worker": threads}
        for nodes, workers, threads in sizes
    ]
    assert cell_names(keys) == [
        "merge 1 node 1 worker 1 thread",
        "merge 11 nodes 1 worker 2 threads",
        "merge 1 node 21 workers 1 thread",
    ]
