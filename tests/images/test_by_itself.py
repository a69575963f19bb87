"""What bindings set on their own, by the UCX that they find."""

import pytest

from gpubench.images.compatibility import set_by_binding


@pytest.mark.parametrize(
    ("ucx", "variables"),
    [
        ("1.17.0.post1", {"UCX_PROTO_ENABLE": "n"}),
        ("1.17.0", {"UCX_PROTO_ENABLE": "n"}),
        ("1.18.0", {}),
        ("1.19.0", {}),
        ("none", {}),
        ("master", {}),
    ],
)
def test_ucxx_0_45_1_turns_protocols_v2_off_before_ucx_1_18(ucx: str, variables: dict[str, str]) -> None:
    assert set_by_binding("ucxx-0.45.1", ucx) == variables


def test_an_unknown_stack_sets_nothing() -> None:
    assert set_by_binding("of-another-gpubench", "1.17.0") == {}
