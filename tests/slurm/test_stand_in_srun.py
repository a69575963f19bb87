"""The stand-in for pyxis: real containers on real hosts, pyxis' grammar and words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slurm.cluster import OTHER_USER, SlurmCluster
from tests.slurm.hosts import until

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


def creations(slurm: SlurmCluster) -> list[str]:
    file = slurm.shared / "pyxis" / "creations"
    return file.read_text().splitlines() if file.exists() else []


@pytest.mark.parametrize("user", ["", OTHER_USER], ids=["root", OTHER_USER])
def test_tasks_on_two_hosts_run_in_the_image_with_its_mounts(
    slurm: SlurmCluster, shared: Path, squashfs: Path, user: str
) -> None:
    for name in ("in", "out dir"):
        (shared / name).mkdir()
        (shared / name).chmod(0o777)
    (shared / "in" / "file").write_text("of the host\n")
    mounts = f"{shared}/in:/root/rundir/in:ro,{shared}/out dir:/data/out:rw,/etc/hosts:/etc/hosts.of.host:ro"
    program = (
        "import os, ssl\n"
        "print(open('in/file').read(), os.listdir('/'))\n"
        "print(os.path.exists('/etc/hosts.of.host'), os.getuid(), os.getcwd())\n"
        "open('/data/out/' + os.uname().nodename, 'w').close()\n"
        "open('/root/rundir/in/no', 'w')\n"
    )
    done = slurm.run(
        [
            *("srun", "-N2", "-w", "n1,n2", f"--container-image={squashfs}", "--no-container-mount-home"),
            *("--container-mounts", mounts, "python3", "-c", program),
        ],
        user=user,
        pyxis=True,
    )
    assert done.stdout.count("of the host\n") == 2
    assert "'var'" not in done.stdout
    assert done.stdout.count(f"True {65534 if user else 0} /root/rundir\n") == 2, done.stdout + done.stderr
    assert done.stderr.count("OSError: [Errno 30] Read-only file system") == 2
    assert done.returncode == 1
    assert {(path.name, path.owner()) for path in (shared / "out dir").iterdir()} == {
        ("n1", user or "root"),
        ("n2", user or "root"),
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


def test_a_named_container_is_created_once_per_host_and_an_unnamed_one_in_every_step(
    slurm: SlurmCluster, shared: Path, squashfs: Path
) -> None:
    before = len(creations(slurm))
    image = f"--container-image={squashfs}"
    for words in ([image, "--container-name=kept"], [image, "--container-name=kept"], ["--container-name=kept"]):
        assert slurm.run(["srun", "-N2", "-n4", "-w", "n1,n2", *words, "true"], pyxis=True).returncode == 0
    assert sorted(line.split()[0] for line in creations(slurm)[before:]) == ["n1", "n2"]
    for _ in range(2):
        assert slurm.run(["srun", "-N2", "-n4", "-w", "n1,n2", image, "true"], pyxis=True).returncode == 0
    assert len(creations(slurm)) == before + 6
    left = [path.name for path in slurm.root.glob("hosts/n*/tmp/stand-in-pyxis-0/pyxis_*") if path.is_dir()]
    assert left == ["pyxis_kept"] * 2


@pytest.mark.parametrize(("script", "code"), [("exit 5", 5), ("kill -9 $$", 137), ("kill -TERM $$", 143)])
def test_the_programs_end_is_the_steps(
    slurm: SlurmCluster, shared: Path, squashfs: Path, script: str, code: int
) -> None:
    done = slurm.run(["srun", "-N1", f"--container-image={squashfs}", "bash", "-c", script], pyxis=True)
    assert done.returncode == code, done.stderr


def test_a_signal_reaches_the_program_once(slurm: SlurmCluster, shared: Path, squashfs: Path) -> None:
    (shared / "job.sh").write_text(
        f"#!/bin/bash\nsrun --container-image={squashfs} --container-mounts={shared}:/out bash -c '\n"
        'trap "echo heard >> /out/heard" USR1; trap "exit 42" TERM; touch /out/ready; while :; do sleep 0.1; done\'\n'
        "echo $? > code\n"
    )
    done = slurm.run(["sbatch", "--parsable", "-o", "out", "job.sh"], cwd=shared, pyxis=True)
    until((shared / "ready").exists, "the program in the container")
    slurm.say("scancel", "--signal=USR1", f"{done.stdout.strip()}.0")
    until((shared / "heard").exists, "the signal in the container")
    slurm.say("scancel", "--signal=TERM", f"{done.stdout.strip()}.0")
    slurm.wait_job(done.stdout.strip())
    assert (shared / "heard").read_text() == "heard\n"
    assert (shared / "code").read_text() == "42\n"


def test_a_missing_image_is_said_as_pyxis_says_it(slurm: SlurmCluster, shared: Path) -> None:
    done = slurm.run(["srun", "-N2", "-n4", "--container-image=/nope.sqsh", "true"], pyxis=True)
    assert done.returncode == 1
    assert done.stderr.count("pyxis: failed to create container filesystem for image: /nope.sqsh\n") == 2
    assert "[ERROR] No such file or directory: /nope.sqsh\n" in done.stderr


def test_a_missing_source_of_a_mount_is_said_as_pyxis_says_it(
    slurm: SlurmCluster, shared: Path, squashfs: Path
) -> None:
    words = ["srun", "-N1", f"--container-image={squashfs}", "--container-mounts=/nope:/data", "true"]
    done = slurm.run(words, pyxis=True)
    assert done.returncode == 1
    assert "pyxis: --container-mounts: source path does not exist: /nope\n" in done.stderr
    assert "pyxis: container was not started successfully by another task\n" in done.stderr


@pytest.mark.parametrize(("words", "message"), REFUSED.values(), ids=REFUSED)
def test_what_pyxis_does_not_know_is_refused(slurm: SlurmCluster, words: list[str], message: str) -> None:
    done = slurm.run(["srun", "-N1", *words, "true"], pyxis=True)
    assert done.returncode in {1, 255}
    assert message in done.stderr


def test_options_without_an_image_are_ignored_with_a_word(slurm: SlurmCluster) -> None:
    done = slurm.run(["srun", "-N1", "-J", "--container-name", "--no-container-mount-home", "hostname"], pyxis=True)
    assert done.returncode == 0
    assert done.stdout in {"n1\n", "n2\n", "n3\n", "n4\n"}
    assert "ignoring --[no-]container-mount-home because" in done.stderr
