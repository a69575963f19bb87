"""What differs between two manifests."""

from gpubench.images.manifests import differences


def test_equal_documents_have_no_differences() -> None:
    assert differences({"a": {"b": 1}}, {"a": {"b": 1}}) == []


def test_changed_and_missing_values_are_named_by_path() -> None:
    one = {"stack": {"packages": {"dask": "1", "numpy": "2"}}, "kind": "venv"}
    other = {"stack": {"packages": {"dask": "3"}}, "kind": "venv"}
    assert differences(one, other) == [("stack.packages.dask", "1", "3"), ("stack.packages.numpy", "2", None)]
