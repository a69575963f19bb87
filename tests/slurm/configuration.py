"""The texts that a private Slurm reads. What they deviate from its defaults in makes states come in seconds."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ACCOUNT = "bench"
CLUSTER = "hosts"
CPUS = 16
OF_A_GPU = 10
"""CPUs of a node per GPU, as a DGX-1 has them."""
MEMORY_MB = 16000


@dataclass(frozen=True)
class Options:
    """What a test may choose of a cluster."""

    requeue: bool = False  # jobs start again after a node failure unless they say --no-requeue
    accounting: bool = False  # slurmdbd on a private MariaDB: sacct, accounts and qos
    memory_limits: bool = False  # OUT_OF_MEMORY by control groups of version 1
    gpus: int = 0  # per node; device files that are /dev/null
    ssh: bool = False  # sshd on every host


def slurm_conf(root: Path, router: str, port: int, addresses: Mapping[str, str], options: Options) -> str:
    """slurm.conf; every path lies below ``root``."""
    limits = options.memory_limits
    lines = [
        f"ClusterName={CLUSTER}",
        f"SlurmctldHost={socket.gethostname().partition('.')[0]}({router})",
        f"SlurmctldPort={port}",
        "SlurmUser=root",
        "SlurmdUser=root",
        "AuthType=auth/munge",
        f"AuthInfo=socket={root}/munge/socket",
        "CryptoType=crypto/munge",
        f"StateSaveLocation={root}/state",
        f"SlurmdSpoolDir={root}/spool/%n",
        f"SlurmctldPidFile={root}/run/slurmctld.pid",
        f"SlurmctldLogFile={root}/log/slurmctld.log",
        f"SlurmdPidFile={root}/run/slurmd-%n.pid",
        f"SlurmdLogFile={root}/log/slurmd-%n.log",
        f"ProctrackType=proctrack/{'cgroup' if limits else 'linuxproc'}",
        f"TaskPlugin=task/{'cgroup' if limits else 'none'}",
        "MpiDefault=none",
        "SelectType=select/cons_tres",
        f"SelectTypeParameters={'CR_CPU_Memory' if limits else 'CR_CPU'}",
        "SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0,bf_interval=2",
        "SlurmdTimeout=10",
        "SlurmctldTimeout=10",
        "KillWait=15",
        "ReturnToService=2",
        "InactiveLimit=0",
        f"JobRequeue={int(options.requeue)}",
        "SlurmdParameters=config_overrides",
        "EnforcePartLimits=ALL",
        "MailProg=/bin/true",
        "JobCompType=jobcomp/filetxt",
        f"JobCompLoc={root}/log/jobcomp.txt",
        f"PlugStackConfig={root}/etc/plugstack.conf",
    ]
    if options.accounting:
        lines += [
            "AccountingStorageType=accounting_storage/slurmdbd",
            "AccountingStorageHost=localhost",
            f"AccountingStoragePort={port + 1}",
            f"AccountingStoragePass={root}/munge/socket",
            "AccountingStorageEnforce=associations,limits,qos",
            "JobAcctGatherType=jobacct_gather/linux",
        ]
    if options.gpus:
        lines.append("GresTypes=gpu")
    shape = f"CPUs={OF_A_GPU * options.gpus or CPUS} RealMemory={MEMORY_MB}"
    shape += f" Gres=gpu:{options.gpus}" if options.gpus else ""
    lines += [
        *(f"NodeName={name} NodeHostname={name} NodeAddr={at} {shape}" for name, at in addresses.items()),
        "PartitionName=batch Nodes=ALL Default=YES MaxTime=04:00:00 DefaultTime=10 State=UP",
        "PartitionName=debug Nodes=n1,n2 MaxTime=00:30:00 DefaultTime=5 State=UP",
    ]
    return "\n".join(lines) + "\n"


def gres_conf(root: Path, options: Options) -> str:
    """gres.conf; ``Count`` without ``File`` leaves nodes invalid."""
    if not options.gpus:
        return "AutoDetect=off\n"
    return f"AutoDetect=off\nNodeName=n[1-4] Name=gpu File={root}/dev/nvidia[0-{options.gpus - 1}]\n"


def cgroup_conf() -> str:
    return "CgroupPlugin=cgroup/v1\nConstrainRAMSpace=yes\nConstrainCores=no\nConstrainDevices=no\n"


def slurmdbd_conf(root: Path, port: int) -> str:
    """slurmdbd.conf; Slurm wants it to be readable by its user only."""
    return (
        f"AuthType=auth/munge\nAuthInfo=socket={root}/munge/socket\nDbdHost=localhost\nDbdPort={port + 1}\n"
        f"SlurmUser=root\nPidFile={root}/run/slurmdbd.pid\nLogFile={root}/log/slurmdbd.log\n"
        "StorageType=accounting_storage/mysql\nStorageHost=localhost\nStorageUser=slurm\nStoragePass=x\n"
    )
