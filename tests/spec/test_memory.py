"""Limits and kills of control groups, in files as kernels write them."""

from pathlib import Path

import pytest

from gpubench.node.spec.memory import killed_for_memory, machine_memory, usable_memory


@pytest.mark.parametrize(
    ("line", "limits"),
    [
        ("0::/user.slice/job_7/step_0", {"user.slice/job_7": "4096", "user.slice/job_7/step_0": "max"}),
        ("0::/", {"": "4096"}),  # of a container with a namespace of its own
        ("12:cpuset,memory:/pbs_jobs/7", {"memory/pbs_jobs/7": "4096", "memory": "9223372036854771712"}),
        ("12:cpuset:/pbs_jobs/7\n4:memory:/slurm/7/step_0", {"memory/slurm/7": "4096"}),
    ],
)
def test_the_memory_that_can_be_used_is_the_least_of_all_groups(
    tmp_path: Path, line: str, limits: dict[str, str]
) -> None:
    (tmp_path / "cgroup").write_text(f"1:name=systemd:/\n{line}\n")
    for group, limit in limits.items():
        (tmp_path / "fs" / group).mkdir(parents=True, exist_ok=True)
        name = "memory.limit_in_bytes" if group.startswith("memory") else "memory.max"
        (tmp_path / "fs" / group / name).write_text(f"{limit}\n")
    assert usable_memory(str(tmp_path / "cgroup"), str(tmp_path / "fs")) == 4096
    assert usable_memory(str(tmp_path / "none"), str(tmp_path / "fs")) == machine_memory()


@pytest.mark.parametrize(
    ("line", "file", "text", "killed"),
    [
        ("0::/job_7", "job_7/memory.events", "low 0\nhigh 0\nmax 31\noom 2\noom_kill 2\noom_group_kill 0", 2),
        ("4:memory:/slurm/7", "memory/slurm/7/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1", 1),
        ("0::/slurm/job_7/step_0/user/task_0", "memory.events", "oom 1\noom_kill 1", 1),  # in a container of enroot
        ("4:memory:/slurm/7/step_0", "memory/memory.oom_control", "under_oom 0\noom_kill 1", 1),
        ("4:memory:/", "memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0", 0),  # before Linux 4.13
    ],
)
def test_processes_that_the_kernel_killed_are_counted(
    tmp_path: Path, line: str, file: str, text: str, killed: int
) -> None:
    (tmp_path / "cgroup").write_text(f"{line}\n")
    (tmp_path / "fs" / file).parent.mkdir(parents=True)
    (tmp_path / "fs" / file).write_text(f"{text}\n")
    assert killed_for_memory(str(tmp_path / "cgroup"), str(tmp_path / "fs")) == killed
