"""What two versions' own ``ucx_info -c -a -f`` prints: their real output, cut to some variables."""

import pytest

from gpubench.images.variables import UcxVariable, parse_configuration
from tests.conftest import ROOT


def listed(version: str) -> dict[str, UcxVariable]:
    return parse_configuration((ROOT / "tests" / "data" / "ucx_info" / f"{version}.txt").read_text())


MEMORIES = "[host|cuda|cuda-managed|rocm|rocm-managed|rdma|ze-host|ze-device|ze-managed|unknown]"


@pytest.mark.parametrize(
    ("version", "name", "variable"),
    [
        ("1.17.0.post1", "UCX_PROTO_ENABLE", UcxVariable("y", "<y|n>", "", "")),
        ("1.19.0", "UCX_TCP_EP_BIND_SRC_ADDR", UcxVariable("try", "<yes|no|try>", "", "tcp")),
        ("1.17.0.post1", "UCX_RNDV_FRAG_MEM_TYPE", UcxVariable("host", MEMORIES, "", "")),
    ],
)
def test_a_variable_has_its_default_its_syntax_and_its_transport(
    version: str, name: str, variable: UcxVariable
) -> None:
    assert listed(version)[name] == variable


def test_another_name_says_of_which_variable() -> None:
    assert listed("1.19.0")["UCX_RNDV_FRAG_MEM_TYPE"].alias_of == "UCX_RNDV_FRAG_MEM_TYPES"
    assert not listed("1.19.0")["UCX_RNDV_FRAG_MEM_TYPES"].alias_of


def test_a_variable_of_a_transport_is_told_from_one_of_all() -> None:
    transports = {name: variable.transport for name, variable in listed("1.19.0").items()}
    assert transports["UCX_POSIX_RECV_OVERHEAD"] == "posix"
    assert transports["UCX_SYSV_RECV_OVERHEAD"] == "sysv"
    assert transports["UCX_PROTO_OVERHEAD"] == transports["UCX_LOG_LEVEL"] == ""


def test_only_what_is_on_or_off_is_a_switch() -> None:
    switches = {name for name, variable in listed("1.19.0").items() if variable.is_switch}
    assert {"UCX_PROTO_ENABLE", "UCX_TCP_EP_BIND_SRC_ADDR", "UCX_GVA_MLOCK"} <= switches
    assert "UCX_MAX_PRIORITY_EPS" not in switches
    assert listed("1.17.0.post1").keys() & {"UCX_GVA_MLOCK", "UCX_TCP_EP_BIND_SRC_ADDR"} == set()
