"""Keys of one cluster under ``protocol = tls``, made by the ``openssl`` command.

Nothing that gpubench depends on can sign a certificate (distributed only uses them; ``cryptography`` isn't among its
requirements), and the command is on every login node. The authority's own key is gone when the two certificates are
signed, so nobody can make a third. Extensions are named one by one: Python 3.13 refuses certificates without them.
"""

from __future__ import annotations

import secrets
import subprocess
import tempfile
from pathlib import Path

from gpubench.errors import MissingToolError
from gpubench.files import write_atomically, writing
from gpubench.model.cluster import TLS_FOLDER

DAYS = 365
PARTIES = ("cluster", "client")
"""Scheduler and workers; users."""
_SETTINGS = """
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[party]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""


def make_keys(directory: Path, name: str) -> None:
    """``tls/``: ``ca.pem``, and ``<party>.pem``, ``<party>.key`` of both parties, all readable by this user only.

    Raises:
        MissingToolError: there is no openssl here, or it fails.
    """
    folder = directory / TLS_FOLDER
    with writing(folder):
        folder.mkdir(mode=0o700)
    with tempfile.TemporaryDirectory(prefix="gpubench-") as temporary:
        work = Path(temporary)
        (work / "settings").write_text(_SETTINGS)
        settings = ["-config", "settings"]
        _openssl(work, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "ca.key")
        subject = ["-subj", f"/CN=gpubench cluster {name}"]
        words = ["-new", "-x509", "-sha256", "-days", str(DAYS), "-extensions", "authority", *settings, *subject]
        _openssl(work, "req", *words, "-key", "ca.key", "-out", "ca.pem")
        for party in PARTIES:
            _sign(work, party, settings)
        for path in [work / "ca.pem", *(work / f"{party}.{end}" for party in PARTIES for end in ("pem", "key"))]:
            write_atomically(folder / path.name, path.read_bytes(), mode=0o600)


def _sign(work: Path, party: str, settings: list[str]) -> None:
    _openssl(work, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{party}.key")
    _openssl(work, "req", "-new", *settings, "-subj", f"/CN={party}", "-key", f"{party}.key", "-out", "request")
    words = ["-CA", "ca.pem", "-CAkey", "ca.key", "-set_serial", str(secrets.randbits(63)), "-days", str(DAYS)]
    words += ["-sha256", "-extfile", "settings", "-extensions", "party"]
    _openssl(work, "x509", "-req", "-in", "request", *words, "-out", f"{party}.pem")


def _openssl(work: Path, *words: str) -> None:
    try:
        done = subprocess.run(
            ["openssl", *words], cwd=work, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise MissingToolError("there is no openssl on this machine, and protocol tls needs keys") from None
    if done.returncode:
        raise MissingToolError(f"openssl {words[0]} failed: {' '.join(done.stderr.split())[-300:]}")
