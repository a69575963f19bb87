"""Which processes of a host are its own daemons, in every form that they show."""

from __future__ import annotations

import pytest

from tests.slurm.cluster import of_the_host


@pytest.mark.parametrize(
    "line",
    [
        "/usr/sbin/sshd -f /somewhere/sshd_config",  # started a moment ago
        "sshd: /usr/sbin/sshd -f /somewhere/sshd_config [listener] 0 of 100-100 startups",
        "sshd: root@notty",
        "slurmd -f /somewhere/slurm.conf",
        "slurmstepd: [12.batch]",
    ],
)
def test_daemons_of_the_host_are_no_job_s_processes(line: str) -> None:
    assert of_the_host(line)


@pytest.mark.parametrize("line", ["python3 node.pyz run --role worker", "/bin/bash /spool/slurm_script", "ssh n2 true"])
def test_what_a_job_started_is_its_own(line: str) -> None:
    assert not of_the_host(line)
