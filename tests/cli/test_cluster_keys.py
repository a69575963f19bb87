"""The keys of a standing cluster under protocol tls."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import ExtensionOID

from gpubench.clusters.keys import make_keys


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
