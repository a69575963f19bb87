import pytest

from gpubench.results.merge.moved import moved_bytes


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
    assert moved_bytes(workload, details, 6) == moved
