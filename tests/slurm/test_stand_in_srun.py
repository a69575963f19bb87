"""The stand-in for pyxis: real containers on real hosts, pyxis' grammar and words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slurm.cluster import SlurmCluster

pytestmark = pytest.mark.testbed
REFUSED = {
    "unknown": (["--container-image=/x", "--container-mount=/a:/b"], "unrecognized option '--container-mount=/a:/b'"),
    "empty": (["--container-image="], "--container-image: argument required"),
    "twice": (["--container-image=/x", "--container-image", "/y"], "--container-image specified multiple times"),
    "no source": (["--container-image=/x", "--container-mounts=:/b"], "--container-mounts: invalid format: :/b"),
    "no target": (["--container-image=/x", "--container-mounts=/a:"], "--container-mounts: invalid format: /a:"),
    "a name as source": (["--container-image=/x", "--container-mounts=a:/b"], "mount source must be a relative path"),
    "flags": (["--container-image=/x", "--container-mounts=/a:/b:wr"], "knows no mount flags like these: /a:/b:wr"),
    "contradiction": (
        ["--container-image=/x", "--container-mount-home", "--no-container-mount-home"],
        "both --container-mount-home and --no-container-mount-home were specified",
    ),
}


def test_the_images_environment_wins_unless_the_variable_is_named(
    slurm: SlurmCluster, shared: Path, squashfs: Path
) -> None:
    def environment(*words: str) -> dict[str, str]:
        done = slurm.run(
            [
                "srun",
                "-N1",
                f"--container-image={squashfs}",
                "--container-workdir=/etc",
                *words,
                "bash",
                "-c",
                "cd . && env",
            ],
            env={"UCX_TLS": "tcp", "MINE": "a b"},
            pyxis=True,
        )
        return dict(line.partition("=")[::2] for line in done.stdout.splitlines())

    plain = environment()
    assert (plain["UCX_TLS"], plain["ONLY"], plain["MINE"]) == ("of-the-image", "in-the-image", "a b")
    assert (plain["SLURM_PROCID"], plain["PWD"]) == ("0", "/etc")
    named = environment("--container-env=MINE,UCX_TLS")
    assert (named["UCX_TLS"], named["ONLY"], named["MINE"]) == ("tcp", "in-the-image", "a b")


def test_a_missing_image_is_said_as_pyxis_says_it(slurm: SlurmCluster, shared: Path) -> None:
    done = slurm.run(["srun", "-N2", "-n4", "--container-image=/nope.sqsh", "true"], pyxis=True)
    assert done.returncode == 1
    assert done.stderr.count("pyxis: failed to create container filesystem for image: /nope.sqsh\n") == 2
    assert "[ERROR] No such file or directory: /nope.sqsh\n" in done.stderr


@pytest.mark.parametrize(("words", "message"), REFUSED.values(), ids=REFUSED)
def test_what_pyxis_does_not_know_is_refused(slurm: SlurmCluster, words: list[str], message: str) -> None:
    done = slurm.run(["srun", "-N1", *words, "true"], pyxis=True)
    assert done.returncode in {1, 255}
    assert message in done.stderr
