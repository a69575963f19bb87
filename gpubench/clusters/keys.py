"""Keys of one cluster under protocol ``tls``: an authority that signs two parties, and is then forgotten."""

import datetime as dt
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gpubench.files import write_atomically, writing
from gpubench.model.cluster import TLS_FOLDER

LIFETIME = dt.timedelta(days=365)
PARTIES = ("cluster", "client")
"""Scheduler and workers; users."""
LONGEST_NAME = 64  # of a common name: RFC 5280, appendix A.1, ub-common-name


def make_keys(directory: Path, name: str) -> None:
    """``tls/``: ``ca.pem``, and ``<party>.pem``, ``<party>.key`` of both parties, all readable by this user only.

    Raises:
        MissingToolError: they can't be written.
    """
    folder = directory / TLS_FOLDER
    with writing(folder):
        folder.mkdir(mode=0o700)
    authority, issuer = ec.generate_private_key(ec.SECP256R1()), _name(f"gpubench cluster {name}")
    pem = serialization.Encoding.PEM
    form, secret = serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    files = {"ca.pem": _certificate(issuer, authority, issuer, authority).public_bytes(pem)}
    for party in PARTIES:
        key = ec.generate_private_key(ec.SECP256R1())
        files[f"{party}.pem"] = _certificate(_name(party), key, issuer, authority).public_bytes(pem)
        files[f"{party}.key"] = key.private_bytes(pem, form, secret)
    for file, data in files.items():
        write_atomically(folder / file, data, mode=0o600)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common[:LONGEST_NAME])])


def _certificate(
    subject: x509.Name, key: ec.EllipticCurvePrivateKey, issuer: x509.Name, authority: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    """Of the authority if it signs its own key, else of a party, which serves and calls."""
    signs, now = key is authority, dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number(), now, now + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=signs, path_length=None), critical=True)
        .add_extension(_usage(signs), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False)
    )
    if not signs:
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        certificate = certificate.add_extension(x509.ExtendedKeyUsage(both), critical=False)
    return certificate.sign(authority, hashes.SHA256())


def _usage(signs: bool) -> x509.KeyUsage:
    others = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    unused = dict.fromkeys((*others, "encipher_only", "decipher_only"), False)
    return x509.KeyUsage(digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, **unused)
