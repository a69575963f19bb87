"""UCX built from a commit of a local repository, as images of kind venv hold it."""

import dataclasses
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from gpubench.errors import BuildError, MissingToolError, UsageError
from gpubench.images.process import run_logged
from gpubench.images.ucx_specs import COMMIT, is_release
from gpubench.model.quantities import format_seconds
from gpubench.model.site import Site
from gpubench.node.spec.plain import content_id
from gpubench.render.ucx import with_cuda, with_fabric

DEADLINE_S = 3600.0
"""One step of a build; all of UCX takes ten minutes on two busy cores."""
PREFIX = "/opt/gpubench/ucx"
"""What is compiled in, so that the same commit gives the same bytes wherever its folder lies. Libraries and modules are
found beside each other."""

# Bindings of other languages are built where a machine has their compilers, and no run loads them.
_WORDS = ("--enable-cma", "--enable-mt", "--without-java", "--without-go")
# Modules by the word that asks for them: configure only warns where it finds no verbs.
_PARTS = {"--with-cuda": "libuct_cuda", "--with-rdmacm": "libuct_rdmacm", "--with-verbs": "libuct_ib"}
_VERSION = re.compile(r"define\(\[ucx_ver_(major|minor|patch)\], *(\d+)\)")
_OF_ANOTHER_BUILD = re.compile(
    r"\w*FLAGS|CC|CXX|CPP|CXXCPP|LD|LIBS|CONFIG_SITE|DESTDIR|GIT_(DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|NAMESPACE|PREFIX"
    r"|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|SHALLOW_FILE|GRAFT_FILE)"
)
_GIT_S = 120.0
_BY_SIGNAL = 128
_OF_MACHINE = re.compile(
    r".*(?:no space left|quota exceeded|cannot allocate memory|killed signal|signal: killed).*", re.IGNORECASE
)
_CAUSE = re.compile(r"(?<![\w-])(?:error|Error|\*\*\*|fatal)[: ].*")


@dataclasses.dataclass(frozen=True)
class UcxSource:
    """A commit of a repository on this machine.

    Args:
        release: as its ``configure.ac`` says; branches of one release have the same.
        configure: words for ``configure-release``.
    """

    repository: Path
    commit: str
    release: str
    configure: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"UCX {self.release} of commit {self.commit[:12]}"

    @property
    def version(self) -> str:
        """What a campaign calls it: the release, which rules about versions go by."""
        return self.release

    @property
    def name(self) -> str:
        """Of its folder: one name is one content."""
        key = content_id({"commit": self.commit, "configure": list(self.configure)})
        return f"ucx-{self.release}-git{self.commit[:12]}-{key[:8]}"

    def digest(self) -> str:
        """The commit."""
        return self.commit

    def build(self, files: Path, log: Path, hold: int) -> None:
        """Compile it, and install it below ``files/libucx``.

        Args:
            log: gets what was printed.
            hold: the builder's lock, which the programs keep open.

        Raises:
            BuildError: a step fails or doesn't end.
            MissingToolError: git, autoconf, automake, libtool, make or a compiler isn't there.
        """
        missing = [tool for tool in ("autoreconf", "libtoolize", "make", "cc", "c++") if shutil.which(tool) is None]
        if missing:
            raise MissingToolError(
                f"UCX is compiled by programs that aren't installed: {', '.join(missing)}",
                then="install autoconf, automake, libtool, make, gcc and g++",
            )
        source, target = files.parent / "source", files.parent / "installed"
        clone = ["git", "clone", "--quiet", "--shared", "--no-checkout", "--", str(self.repository), str(source)]
        steps = (
            (clone, files.parent),
            (["git", "checkout", "--quiet", "--detach", self.commit], source),
            (["./autogen.sh"], source),
            (["./contrib/configure-release", f"--prefix={PREFIX}", *self.configure], source),
            # UCX makes errors of warnings, and a compiler that is newer than the commit has more of them.
            (["make", f"-j{os.cpu_count() or 1}", "CFLAGS=-Wno-error"], source),
            (["make", "install", f"DESTDIR={target}"], source),
        )
        for command, folder in steps:
            _run(command, folder, str(self), log, hold)
        shutil.move(f"{target}{PREFIX}", files / "libucx")
        for word, module in _PARTS.items():
            is_asked = any(option.partition("=")[0] == word for option in self.configure)
            if is_asked and not (files / "libucx" / "lib" / "ucx" / f"{module}.so.0").exists():
                raise MissingToolError(
                    f"{self} was configured {word}, and has no {module}: its build found none on this machine",
                    then=f"install what it is compiled with (libibverbs-dev, rdma-core-devel); see the log: {log}",
                )
        for folder in (source, target):
            shutil.rmtree(folder)


def local_repository(site: Site) -> Path | None:
    """The profile's repository of UCX, if it is a folder of this machine."""
    path = Path(site.image.ucx_repository).expanduser()
    return path.resolve() if path.is_dir() else None


def named_source(text: str, site: Site) -> UcxSource | None:
    """What a spec means on a site whose repository of UCX is a folder; None: no commit, but a release, say.

    Raises:
        UsageError: the folder is gone, and as ``source_of``.
    """
    repository, named = local_repository(site), site.image.ucx_repository
    if is_release(text) or text.startswith("wheel:") or text in ("distribution", "none"):
        return None
    if repository is None and ":" not in named:  # as every URL has, and host:path
        raise UsageError(f"UCX '{text}': there is no clone {named}", then="put it back, or name another one")
    return source_of(repository, text, site) if repository else None


def source_of(repository: Path, text: str, site: Site) -> UcxSource:
    """A branch, tag or commit of a repository, as a spec names it, built for a site.

    Raises:
        UsageError: there is no such commit, or it isn't one of UCX.
    """
    ref = text.removeprefix("git:")
    _, at, pinned = ref.rpartition("@")
    commit = commit_named(repository, pinned if at and COMMIT.fullmatch(pinned) else ref)
    cuda = with_cuda(os.path.expandvars(site.image.cuda_home)) if site.has_gpus else ["--without-cuda"]
    release = release_of(repository, commit)
    return UcxSource(repository, commit, release, (*_WORDS, *with_fabric(site.image.fabric), *cuda))


def release_of(repository: Path, commit: str) -> str:
    """As ``configure.ac`` of the commit says. Raises UsageError: it says none."""
    numbers = dict(_VERSION.findall(_git(repository, "show", f"{commit}:configure.ac") or ""))
    if len(numbers) < 3:
        raise UsageError(
            f"commit {commit[:12]} in {repository} isn't one of UCX", then="its configure.ac has no version"
        )
    return ".".join(numbers[part] for part in ("major", "minor", "patch"))


def commit_named(repository: Path, ref: str) -> str:
    """All 40 digits of whatever ``git rev-parse`` takes for one commit; ``1.18.0`` is also tag ``v1.18.0``.

    Raises:
        UsageError: it takes it for none.
    """
    if _git(repository, "rev-parse", "--git-dir") is None:
        raise UsageError(f"git can't read {repository}", then=f"see {_command(repository, 'status')}")
    for name in () if ref.startswith("-") else (ref, f"v{ref}", f"origin/{ref}"):
        commit = _git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}") or ""
        if COMMIT.fullmatch(commit.strip()):  # "^REF" is taken too, as all that isn't below it
            return commit.strip()
    raise UsageError(
        f"{repository} has no branch, tag or commit '{ref}'", then=f"see {_command(repository, 'branch', '-a')}"
    )


def commits_between(repository: Path, first: str, last: str) -> dict[str, str]:
    """From one commit to another, both included: back to the newest one that both have, and forward again.

    On each side only what its branch merged as one (``--first-parent``), so that each of them is a state that it had.
    The first line of its message by commit. Raises UsageError: the two have no common commit, or the
    clone is shallow.
    """
    if (_git(repository, "rev-parse", "--is-shallow-repository") or "").strip() == "true":
        raise UsageError(
            f"{repository} is a shallow clone: it lacks commits",
            then=f"type {_command(repository, 'fetch', '--unshallow')}",
        )
    base = (_git(repository, "merge-base", first, last) or "").strip()
    if not base:
        raise UsageError(f"{first[:12]} and {last[:12]} have no common commit in {repository}")
    back, forward = (_log(repository, "--first-parent", f"{base}..{commit}") for commit in (first, last))
    return dict([*back, *_log(repository, "-1", base), *reversed(forward)])


def _log(repository: Path, *arguments: str) -> list[tuple[str, str]]:
    """Commits and the first lines of their messages, the newest first."""
    lines = (_git(repository, "log", "--format=%H %s", *arguments) or "").splitlines()
    return [(commit, subject) for commit, _, subject in (line.partition(" ") for line in lines)]


def _command(repository: Path, *arguments: str) -> str:
    return shlex.join(["git", "-C", str(repository), *arguments])


def _git(repository: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=_environment(),
            timeout=_GIT_S,
            check=False,
        )
    except FileNotFoundError:
        raise MissingToolError("git, which reads UCX's repository, is not installed", then="install git") from None
    return done.stdout if done.returncode == 0 else None


def _environment() -> dict[str, str]:
    """Without what a shell says for its own builds, which would make another UCX of the same commit; nor what git says
    in its hooks, by which another repository would be read.
    """
    return {key: value for key, value in os.environ.items() if not _OF_ANOTHER_BUILD.fullmatch(key)}


def _run(command: Sequence[str], folder: Path, what: str, log: Path, hold: int) -> None:
    arguments = [shutil.which(command[0]) or command[0], *command[1:]]
    code, output = run_logged(
        arguments, folder=folder, env=_environment(), log=log, hold=hold, deadline_s=DEADLINE_S, starts_others=True
    )
    if code is None:
        raise BuildError(f"{what}: {command[0]} didn't end within {format_seconds(DEADLINE_S)}", then=f"log: {log}")
    if code:
        causes = _OF_MACHINE.findall(output) or _CAUSE.findall(output)
        cause = causes[0].strip() if causes else f"it ended with {code}"
        # Of these, another try may do: no commit is to blame.
        by_machine = command[0] == "git" or code > _BY_SIGNAL or _OF_MACHINE.search(output)
        kind = MissingToolError if by_machine else BuildError
        raise kind(f"{what} can't be built: {command[0]}: {cause[:200]}", then=f"see the log: {log}")
