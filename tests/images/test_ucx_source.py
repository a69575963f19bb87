"""UCX built from a commit: who is to blame where it can't be, and what a killed gpubench leaves."""

import dataclasses
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpubench.errors import BuildError, MissingToolError
from gpubench.images.ucx_source import UcxSource
from tests.cli.campaigns import until
from tests.conftest import need_compiler
from tests.images.conftest import git, repository

CODE = """\
import os, sys
from pathlib import Path
from gpubench.images.ucx_source import UcxSource
folder = Path(sys.argv[1])
UcxSource(folder / "ucx", sys.argv[2], "1.19.0").build(folder / "build" / "files", folder / "log", 0)
"""


def committed(folder: Path, makefile: str) -> UcxSource:
    need_compiler()
    scripts = dict.fromkeys(("autogen.sh", "contrib/configure-release"), "#!/bin/sh\n")
    made = repository(folder / "ucx", {**scripts, "Makefile": makefile})
    (folder / "build" / "files").mkdir(parents=True)
    return UcxSource(made, git(made, "rev-parse", "HEAD"), "1.19.0")


@pytest.mark.integration
@pytest.mark.parametrize(
    ("makefile", "is_its_fault"),
    [
        ("all:\n\t@echo 'gcc -Werror -Wall'; echo 'ucp.c:1: error: expected declaration' >&2; false\n", True),
        ("all:\n\t@echo 'ld: final link failed: No space left on device' >&2; false\n", False),
        ("all:\n\t@echo 'cc1: fatal error: Killed signal terminated program' >&2; false\n", False),
        ("all:\n\t@kill -9 $$PPID\n", False),
    ],
)
def test_a_commit_is_to_blame_only_for_what_another_try_would_not_change(
    tmp_path: Path, makefile: str, is_its_fault: bool
) -> None:
    source = committed(tmp_path, makefile)
    with pytest.raises(MissingToolError, match="can't be built: make: ") as error:
        source.build(tmp_path / "build" / "files", tmp_path / "log", 0)
    assert isinstance(error.value, BuildError) is is_its_fault
    assert "-Wall" not in str(error.value)


@pytest.mark.integration
def test_a_commit_that_configure_built_without_what_it_was_asked_for_is_refused(tmp_path: Path) -> None:
    """UCX's configure ends well where it finds no header of verbs: it warns, and leaves its module out."""
    modules = "$(DESTDIR)/opt/gpubench/ucx/lib/ucx"
    made = committed(tmp_path, f"all:\ninstall:\n\tmkdir -p {modules}\n\ttouch {modules}/libuct_cuda.so.0\n")
    for asked, module in {"--with-verbs": "libuct_ib", "--with-rdmacm": "libuct_rdmacm"}.items():
        source = dataclasses.replace(made, configure=("--with-cuda=/usr/local/cuda", "--without-verbs", asked))
        files = tmp_path / module / "files"
        files.mkdir(parents=True)
        with pytest.raises(MissingToolError, match=f"was configured {asked}, and has no {module}: ") as error:
            source.build(files, tmp_path / "log", 0)
        assert not isinstance(error.value, BuildError)


@pytest.mark.integration
def test_a_warning_of_the_compiler_is_no_commits_fault(tmp_path: Path) -> None:
    """As UCX has it: -Werror in BASE_CFLAGS, behind them the CFLAGS, which are empty unless somebody says so."""
    program = "enum advice { A }; int f(enum advice); int f(unsigned a) { return (int)a; } void g(void) { int unused; }"
    made = committed(
        tmp_path,
        "BASE_CFLAGS = -Wall -Werror\nCFLAGS =\n"
        f"all:\n\tprintf '%s\\n' '{program}' >a.c && $(CC) $(BASE_CFLAGS) $(CFLAGS) -c a.c\n"
        "install:\n\tmkdir -p $(DESTDIR)/opt/gpubench/ucx/lib\n",
    )
    made.build(tmp_path / "build" / "files", tmp_path / "log", 0)
    assert (tmp_path / "build" / "files" / "libucx" / "lib").is_dir()


@pytest.mark.integration
def test_a_killed_gpubench_leaves_nothing_of_a_build(tmp_path: Path) -> None:
    source = committed(tmp_path, f"all:\n\t$(MAKE) sub\nsub:\n\techo $$$$ > {tmp_path}/pid; sleep 60; true\n")
    with subprocess.Popen([sys.executable, "-c", CODE, str(tmp_path), source.commit]) as builder:
        until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip(), "the compiler")
        builder.send_signal(signal.SIGKILL)
    pid = int((tmp_path / "pid").read_text())
    until(lambda: not is_alive(pid), "the end of the compiler")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
