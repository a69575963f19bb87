"""Somebody who works with one engine and one registry, by the public commands."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.cli.campaigns import Front
from tests.conftest import own_queue, run_gpubench
from tests.docker.daemon import DockerDaemon, RegistryServer


class Site:
    """A directory in which somebody works with one engine and one registry."""

    def __init__(self, directory: Path, daemon: DockerDaemon, registry: RegistryServer, base: str) -> None:
        self.directory = directory
        self.base = base
        self.settings = ["--set", "image.build_network=host", "--set", f"image.registry={registry.host}/team/bench"]
        self.env = {
            **own_queue(directory),
            "DOCKER_HOST": daemon.host,
            "DOCKER_CONFIG": str(directory),
            "XDG_CACHE_HOME": str(directory / "cache"),
        }

    def planned(self, outputs: str) -> Path:
        """A campaign of two runs that nobody has started."""
        outputs += f"-{len(list(self.directory.iterdir()))}"  # a second try of a test finds what the first one left
        words = self.bench("--variants", "a=1.16.0 b=1.16.0", "--blocks", "1")[1:]
        done = self.run("plan", *words, "--images", "--out", f"{outputs}/planned")
        assert done.returncode == 0, done.stderr
        (campaign,) = (self.directory / outputs).iterdir()
        return campaign

    def run(self, *words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return run_gpubench(words, self.directory, {**self.env, **(env or {})})

    def front(self, *words: str) -> Front:
        return Front(self.directory, *words, env=self.env)

    @property
    def rows(self) -> dict[str, dict[str, str]]:
        """The locked rows that are in the registry, by version."""
        lock = tomllib.loads((self.directory / "images.lock.toml").read_text())
        return {row["spec"]: row for row in lock["image"] if row.get("registry")}

    def bench(self, *words: str) -> list[str]:
        return ["bench", "--runtime", "docker", "--suite", "verify", "--seed", "1", *words, *self.settings]


def processes(campaign: Path) -> list[dict[str, Any]]:
    """What every process of every run said of itself."""
    records = [json.loads(path.read_text()) for path in campaign.glob("runs/*/provenance.json")]
    return [process for record in records for process in record["processes"]]
