"""slurmdbd on a private MariaDB: what ``sacct``, accounts and qos need."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from tests.slurm.configuration import ACCOUNT, CLUSTER
from tests.slurm.daemons import Daemon, answers

Ready = Callable[[], bool]
PROGRAMS = ("slurmdbd", "sacctmgr", "mariadbd", "mariadb", "mariadb-install-db")
_CREATE = (
    "create database slurm_acct_db; create user 'slurm'@'localhost' identified by 'x';"
    "grant all on slurm_acct_db.* to 'slurm'@'localhost'"
)


def daemons(root: Path, env: Mapping[str, str]) -> Iterator[tuple[Daemon, Ready]]:
    """The database and slurmdbd, each with the question whether it is ready; start one before the next is asked for."""
    data = root / "db"
    data.mkdir(mode=0o700)
    shutil.chown(data, "mysql", "mysql")
    common = ["--no-defaults", f"--datadir={data}"]
    _must(
        ["mariadb-install-db", *common, "--user=mysql", "--auth-root-authentication-method=normal", "--skip-test-db"],
        env,
    )
    sizes = ["--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0", "--innodb-log-file-size=8M"]
    server = ["mariadbd", *common, "--skip-networking", f"--socket={data / 's'}", f"--pid-file={data / 'pid'}", *sizes]
    sql = ["mariadb", "--no-defaults", "-S", str(data / "s"), "-e"]
    yield Daemon(server, root / "log" / "mariadbd", env, user="mysql"), lambda: answers([*sql, "select 1"], env)
    _must([*sql, _CREATE], env)
    slurmdbd = Daemon(["slurmdbd", "-D"], root / "log" / "slurmdbd", {**env, "MYSQL_UNIX_PORT": str(data / "s")})
    yield slurmdbd, lambda: answers(["sacctmgr", "-n", "list", "qos"], env)


def add_users(users: Iterable[str], env: Mapping[str, str], cluster: str = CLUSTER) -> None:
    """Users of the account; slurmctld must be told before it starts."""
    _must(["sacctmgr", "-i", "add", "cluster", cluster], env)
    _must(["sacctmgr", "-i", "add", "account", ACCOUNT, f"cluster={cluster}"], env)
    for user in users:
        _must(["sacctmgr", "-i", "add", "user", user, f"account={ACCOUNT}", f"cluster={cluster}"], env)


def _must(words: list[str], env: Mapping[str, str]) -> None:
    done = subprocess.run(words, env={**os.environ, **env}, capture_output=True, text=True, timeout=150, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stdout[-500:]}{done.stderr[-500:]}")
