"""sshd on every host, for the launcher that goes from node to node by ssh; one key pair for the user root."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path


def set_up(root: Path, addresses: Mapping[str, str]) -> str:
    """Write keys, sshd_config and the client's config; the words that start sshd on a host."""
    home = root / "ssh"
    home.mkdir(mode=0o700)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / name)], check=True)
    host_key = " ".join((home / "host.pub").read_text().split()[:2])
    (home / "known_hosts").write_text("".join(f"{name} {host_key}\n" for name in addresses))
    (home / "sshd_config").write_text(
        f"Port 22\nHostKey {home}/host\nAuthorizedKeysFile {home}/user.pub\nUsePAM no\nStrictModes no\n"
        "PasswordAuthentication no\nPermitRootLogin yes\nPidFile none\nMaxStartups 100\n"
    )
    common = f"  User root\n  IdentityFile {home}/user\n  UserKnownHostsFile {home}/known_hosts\n  BatchMode yes\n"
    (home / "config").write_text(
        "".join(f"Host {name}\n  HostName {at}\n  HostKeyAlias {name}\n{common}" for name, at in addresses.items())
    )
    return f"/usr/sbin/sshd -f {home}/sshd_config"
