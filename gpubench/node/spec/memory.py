"""The memory that this process may use: the machine's, or less in a control group; cgroups(7), both versions.

A batch system may give a job less memory than the machine has, and a container too. Beyond it the kernel kills.
"""

import os
from pathlib import Path
from typing import Iterator, Tuple

GROUPS = "/proc/self/cgroup"
ROOT = "/sys/fs/cgroup"


def machine_memory() -> int:
    """Bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def usable_memory(groups: str = GROUPS, root: str = ROOT) -> int:
    """Bytes: the machine's memory, or the least limit of the groups that hold this process."""
    least = machine_memory()
    for group, is_old in _groups(groups, root):
        name = "memory.limit_in_bytes" if is_old else "memory.max"
        limits = [kernel_text(folder / name) for folder in (group, *group.parents)]
        least = min([least, *(int(limit) for limit in limits if limit.isdigit())])
    return least


def killed_for_memory(groups: str = GROUPS, root: str = ROOT) -> int:
    """How many processes of this process's group the kernel has killed for lack of memory; 0 if it doesn't say."""
    killed = 0
    for group, is_old in _groups(groups, root):
        for line in kernel_text(group / ("memory.oom_control" if is_old else "memory.events")).splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill" and count.isdigit():
                killed += int(count)
    return killed


def _groups(groups: str, root: str) -> Iterator[Tuple[Path, bool]]:
    """This process's groups for memory, and whether each is of the first version.

    In a container of enroot no path leads to its group: a hook mounts it, under Slurm the one above it, in place of all
    (conf/hooks/10-cgroups.sh of enroot 4.1.2).
    """
    for line in kernel_text(Path(groups)).splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        if not controllers or "memory" in controllers.split(","):
            group = Path(root, "memory" if controllers else "", path.strip("/"))
            yield next(folder for folder in (group, *group.parents) if folder.is_dir()), bool(controllers)


def kernel_text(path: Path) -> str:
    """What the kernel says in a file; empty where it doesn't: not every kernel or interface has each."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
