"""Parts of ``gpubench cluster``: its keys under protocol tls, the jobs that it gives back, the client that looks."""

import itertools
import ssl
import stat
import types
from pathlib import Path
from typing import Any, cast

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtensionOID
from hypothesis import given
from hypothesis import strategies as st

from gpubench.clusters import inspect
from gpubench.clusters.keys import make_keys
from gpubench.clusters.resize import choose
from gpubench.errors import InterruptedByUserError, MissingToolError, UsageError

ADDRESS = "tcp://127.0.0.1:1"


def program(directory: Path, text: str) -> Path:
    path = directory / "python"
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_client_that_hears_no_signal_is_killed_when_its_command_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf = program(tmp_path, 'trap "" TERM\nkill -INT "$PPID"\nsleep 600')
    monkeypatch.setattr(inspect, "STOP_S", 0.5)
    with pytest.raises(InterruptedByUserError, match=r"^interrupted by SIGINT$"):
        inspect.ask(ADDRESS, deaf, {})


def test_the_last_line_of_a_client_without_an_answer_is_said(tmp_path: Path) -> None:
    lost = program(tmp_path, "echo first; echo gpubench look: this Python has no distributed")
    with pytest.raises(MissingToolError, match="python couldn't check the cluster: this Python has no distributed"):
        inspect.ask(ADDRESS, lost, {})


def test_each_party_has_a_key_that_the_authority_signed_and_the_authority_signs_no_more(tmp_path: Path) -> None:
    """Also for a name that is longer than a certificate's may be."""
    make_keys(tmp_path, "n" * 200)
    folder = tmp_path / "tls"
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert files == dict.fromkeys(("ca.pem", "client.key", "client.pem", "cluster.key", "cluster.pem"), 0o600)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    authority = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
    for party in ("cluster", "client"):
        certificate = x509.load_pem_x509_certificate((folder / f"{party}.pem").read_bytes())
        certificate.verify_directly_issued_by(authority)
        ssl.create_default_context(cafile=folder / "ca.pem").load_cert_chain(
            folder / f"{party}.pem", folder / f"{party}.key"
        )
        assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        assert [one.dotted_string for one in usage] == ["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]
    constraints = authority.extensions.get_extension_for_oid(ExtensionOID.BASIC_CONSTRAINTS)
    assert constraints.critical
    assert constraints.value == x509.BasicConstraints(ca=True, path_length=None)


def jobs_of(sizes: list[int]) -> list[Any]:
    return [types.SimpleNamespace(job=f"g{rank}", nodes=nodes, first_rank=rank) for rank, nodes in enumerate(sizes)]


@given(sizes=st.lists(st.integers(1, 9), max_size=7), nodes=st.integers(0, 30))
def test_jobs_that_fit_exactly_are_chosen_few_and_new_ones_first(sizes: list[int], nodes: int) -> None:
    newest = jobs_of(sizes)[::-1]
    subsets = [some for count in range(1, len(sizes) + 1) for some in itertools.combinations(newest, count)]
    fitting = [list(some) for some in subsets if sum(job.nodes for job in some) == nodes]
    if fitting:
        assert choose(cast("Any", newest), nodes) == fitting[0]
    else:
        with pytest.raises(UsageError, match="only the job" if not sizes else "no set of jobs has"):
            choose(cast("Any", newest), nodes)
