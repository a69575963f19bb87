"""What containers left on the hosts of the test cluster."""

from __future__ import annotations

from tests.slurm.cluster import SlurmCluster


def creations(slurm: SlurmCluster) -> list[str]:
    """What the stand-in for pyxis unpacked."""
    file = slurm.shared / "pyxis" / "creations"
    return file.read_text().splitlines() if file.exists() else []


def unpacked(slurm: SlurmCluster) -> list[str]:
    """The containers on the hosts, whole or not."""
    folders = [
        *slurm.root.glob("hosts/n*/tmp/stand-in-pyxis-*"),
        *slurm.root.glob("hosts/n*/tmp/gpubench-enroot-*/containers"),
    ]
    return sorted(path.name for folder in folders for path in folder.glob("[!.]*"))
