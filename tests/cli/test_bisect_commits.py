"""``gpubench bisect --over commits``: real images, of a repository whose commits build UCX from a wheel's libraries."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gpubench.campaign.bisection_commits import commits_of
from gpubench.errors import UsageError
from gpubench.images.kinds.base import images_root
from gpubench.images.kinds.venvs import ensure
from gpubench.images.ucx_source import commit_named, commits_between
from gpubench.resources.profiles import load_site
from gpubench.store.campaign import Campaign
from tests.cli.campaigns import write_suite
from tests.conftest import Run, need_compiler

RELEASE = "1.19.0"
CONFIGURE_AC = "define([ucx_ver_major], 1)\ndefine([ucx_ver_minor], 19)\ndefine([ucx_ver_patch], 0)\n"
LIBFABRIC = "AC_INIT([libfabric], [1.0])\n"
# ucx_info prints the commit that it was built of, as UCX's own build makes it.
MAKEFILE = """\
all:
install:
\tmkdir -p $(DESTDIR)/opt/gpubench/ucx
\tcp -r {files}/lib {files}/bin $(DESTDIR)/opt/gpubench/ucx
\tmv $(DESTDIR)/opt/gpubench/ucx/bin/ucx_info $(DESTDIR)/opt/gpubench/ucx/bin/real
\tsed "s/COMMIT/$$(git rev-parse --short=7 HEAD)/" ucx_info > $(DESTDIR)/opt/gpubench/ucx/bin/ucx_info
\tchmod +x $(DESTDIR)/opt/gpubench/ucx/bin/ucx_info
"""
UCX_INFO = """#!/bin/sh
exec 3>&1; "$(dirname "$0")/real" "$@" | sed "s/revision [0-9a-f]*/revision COMMIT/" >&3
"""
BROKEN = "install:\n\t@echo 'ucp.c:1: error: expected declaration' >&2; false\n"


class Repository:
    def __init__(self, folder: Path, libraries: Path) -> None:
        self.folder, self.libraries = folder, libraries
        folder.mkdir()
        self.git("init", "-q", "-b", "master")
        (folder / "contrib").mkdir()
        for name in ("autogen.sh", "contrib/configure-release"):
            (folder / name).write_text("#!/bin/sh\n")
            (folder / name).chmod(0o755)
        (folder / "ucx_info").write_text(UCX_INFO)

    def git(self, *words: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        done = subprocess.run(["git", *identity, *words], cwd=self.folder, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, subject: str, makefile: str = "", configure_ac: str = CONFIGURE_AC) -> str:
        (self.folder / "configure.ac").write_text(configure_ac)
        (self.folder / "Makefile").write_text(makefile or MAKEFILE.format(files=self.libraries))
        (self.folder / "NEWS").write_text(subject)
        self.git("add", ".")
        self.git("commit", "-q", "-m", subject)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Repository]:
    need_compiler()
    image, _ = ensure([RELEASE], images_root(), lambda _line: None)[RELEASE]
    made = Repository(tmp_path / "ucx", Path(image.env["LD_LIBRARY_PATH"]).parent)
    yield made
    for commit in made.git("rev-list", "--all").split():
        for folder in (images_root() / "venv").glob(f"ucx-{RELEASE}-git{commit[:12]}-*"):
            shutil.rmtree(folder)


@pytest.fixture
def bisect(gpubench: Run, tmp_path: Path) -> Any:
    suite = ("--suite", write_suite(tmp_path), "--protocol", "ucx", "--workers", "1", "--seed", "1", "--margin", "10%")

    def run(repository: Repository, ends: str) -> Any:
        words = ("--variants", ends, "--over", "commits", "--repo", repository.folder)
        return gpubench("bisect", *words, *suite, "--json")

    return run


@pytest.mark.integration
def test_the_commit_that_made_it_slower_is_named_and_commits_that_have_no_image_are_tried_once_and_skipped(
    runs: Any, bisect: Any, repository: Repository, tmp_path: Path
) -> None:
    """One doesn't build, one isn't of UCX, and one is a version that the stack doesn't run."""
    broken = BROKEN.replace("@echo", f"@echo $$(git rev-parse HEAD) >> {tmp_path}/tries; echo")
    other = {4: LIBFABRIC, 5: CONFIGURE_AC.replace("major], 1", "major], 9")}
    commits = [
        repository.commit(f"commit {number}", broken if number == 3 else "", other.get(number, CONFIGURE_AC))
        for number in range(1, 8)
    ]
    slow = {commit[:10] for commit in commits[5:]} | {"new"}
    written = runs(lambda env: 1.5 if env["label"] in slow else 1.0)
    done = bisect(repository, f"old={commits[0]} new=master")
    answer = json.loads(done.stdout)
    assert (answer["answer"], answer["low"], answer["high"]) == ("named", commits[1][:10], commits[5][:10])
    assert answer["changes"][0]["skipped"] == [commit[:10] for commit in commits[2:5]]
    assert (tmp_path / "tries").read_text().split() == [commits[2]]
    notes = " ".join(answer["notes"])
    for text in (
        f"{commits[5][:10]}: commit 6",
        f"{commits[2][:10]} was not built: UCX 1.19.0 of commit {commits[2][:12]} can't be built: make: error: ",
        f"{commits[3][:10]} was not built: commit {commits[3][:12]} in {repository.folder} isn't one of UCX",
        f"{commits[4][:10]} was not built: it is UCX 9.19.0, and stack ",
    ):
        assert text in notes
    assert not {label for step in written.steps for label in step} & {*answer["changes"][0]["skipped"]}


@pytest.mark.integration
def test_between_ends_of_which_nothing_can_be_built_or_started_the_ends_are_the_answer(
    runs: Any, bisect: Any, repository: Repository
) -> None:
    commits = [repository.commit("first"), repository.commit("second", BROKEN)]
    (repository.folder / "ucx_info").write_text("#!/bin/sh\necho undefined symbol; exit 127\n")
    commits.append(repository.commit("third"))
    (repository.folder / "ucx_info").write_text(UCX_INFO)
    commits.append(repository.commit("fourth"))
    written = runs(lambda env: 1.5 if env["label"] == "new" else 1.0)
    done = bisect(repository, f"old={commits[0]} new=master")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["answer"], answer["low"], answer["high"]) == ("named", "old", "new")
    assert answer["changes"][0]["skipped"] == [commit[:10] for commit in commits[1:3]]
    assert answer["effect"]["blocks"] == 5
    assert "answers as UCX '': undefined symbol" in " ".join(answer["notes"])
    assert written.steps == [["old", "new"]] * 2


@pytest.mark.integration
def test_between_two_branches_the_way_leads_over_the_commit_that_both_have(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, base = repository.commit("first"), repository.commit("base")
    side = [repository.commit(f"side {number}") for number in range(2)]
    repository.git("checkout", "-q", "-b", "other", base)
    main = [repository.commit(f"main {number}") for number in range(2)]
    assert [*commits_between(repository.folder, side[1], main[1])] == [side[1], side[0], base, *main]
    assert [*commits_between(repository.folder, main[0], first)] == [main[0], base, first]
    space = commits_of([f"a={side[1]}", "b=other"], repository.folder, load_site("local"))
    assert space.labels == ["a", side[0][:10], base[:10], main[0][:10], "b"]
    assert space.subject(1) == "side 0"
    assert f"git:{base},stack=" in space.variant(2)
    monkeypatch.setenv("GIT_DIR", str(repository.folder / "none"))  # as in a hook of git
    space = commits_of(["master,UCX_TLS=tcp", "other,UCX_TLS=tcp"], repository.folder, load_site("local"))
    assert space.labels == ["master", side[0][:10], base[:10], main[0][:10], "other"]
    assert space.variant(0).endswith(",UCX_TLS=tcp")


@pytest.mark.integration
def test_ends_that_are_no_two_commits_are_refused(bisect: Any, repository: Repository) -> None:
    repository.commit("first")
    repository.commit("second")
    for ends, message in (
        ("master other", "has no branch, tag or commit 'other'"),
        ("a=master b=master", "both ends are commit "),
        ("master", "two"),
        ("master master~1,UCX_TLS=tcp", "searches commits alone"),
    ):
        done = bisect(repository, ends)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr


@pytest.mark.integration
def test_an_image_of_a_commit_is_that_commit_or_none(gpubench: Run, repository: Repository, tmp_path: Path) -> None:
    (repository.folder / "ucx_info").write_text(UCX_INFO.replace("COMMIT", "0123456"))
    commit = repository.commit("says it is another one")
    suite = write_suite(tmp_path)
    words = ("--suite", suite, "--variants", f"a=1.19.0 b=git:master@{commit}", "--blocks", "1")
    done = gpubench("bench", *words, "--set", f"image.ucx_repository={repository.folder}")
    assert done.returncode == 5
    assert f"UCX {commit[:12]} answers as revision '0123456'" in done.stderr


@pytest.mark.integration
def test_a_folder_without_a_repository_and_a_shallow_clone_are_refused(repository: Repository, tmp_path: Path) -> None:
    first, last = repository.commit("first"), repository.commit("last")
    shallow, empty = tmp_path / "shallow clone", tmp_path / "empty"
    repository.git("clone", "-q", "--depth", "1", f"file://{repository.folder}", str(shallow))
    with pytest.raises(UsageError, match=r"has no branch, tag or commit .*; see git -C '.*shallow clone' branch -a"):
        commits_of([f"a={first}", "b=master"], shallow, load_site("local"))
    with pytest.raises(UsageError, match=r"is a shallow clone: it lacks commits; type git -C '.*' fetch --unshallow"):
        commits_between(shallow, last, last)
    with pytest.raises(UsageError, match="is no folder"):
        commits_of(["a=1", "b=2"], empty, load_site("local"))
    empty.mkdir()
    with pytest.raises(UsageError, match="git can't read "):
        commits_of(["a=master", "b=other"], empty, load_site("local"))


@pytest.mark.integration
def test_a_search_whose_clone_is_gone_says_so(runs: Any, gpubench: Run, bisect: Any, repository: Repository) -> None:
    commits = [repository.commit(f"commit {number}") for number in range(2)]
    runs(lambda env: 1.5 if env["label"] == "new" else 1.0, stop_after=0)
    search = re.search(r"search (\S+)", bisect(repository, f"old={commits[0]} new=master").stderr)
    assert search
    moved = repository.folder.rename(repository.folder.with_name("moved"))
    done = gpubench("bisect", search[1])
    moved.rename(repository.folder)
    assert done.returncode == UsageError.exit_code
    assert f"there is no clone {repository.folder}; put it back" in done.stderr


@pytest.mark.integration
@pytest.mark.parametrize(
    "words",
    [("--points", "a=git:master b=git:master,{}"), ("--variants", "a=master b=master,{}", "--over", "settings")],
)
def test_a_branch_is_the_commit_that_it_was_when_the_search_began(
    runs: Any, gpubench: Run, repository: Repository, tmp_path: Path, words: Sequence[str]
) -> None:
    cause = "UCX_TCP_KEEPIDLE"
    commit = repository.commit("only")
    runs(lambda env: 1.5 if cause in env else 1.0, stop_after=2)
    suite = ("--suite", write_suite(tmp_path), "--protocol", "ucx", "--workers", "1", "--seed", "1", "--margin", "10%")
    typed = [word.format(f"{cause}=20s") for word in words]
    done = gpubench("bisect", *typed, *suite, "--set", f"image.ucx_repository={repository.folder}")
    assert done.returncode == 130, done.stderr
    repository.commit("moved on")
    (search,) = (tmp_path / "outputs").glob("*-bisect-*")
    done = gpubench("bisect", search, code=0)
    for step in search.glob("step-*"):
        for variant in Campaign.open(step).plan.variants:
            assert variant.ucx.startswith(f"git:{commit}")


@pytest.mark.integration
def test_a_plan_and_a_campaign_name_the_commit_of_a_branch(
    runs: Any, gpubench: Run, repository: Repository, tmp_path: Path
) -> None:
    commit = repository.commit("only")
    runs(lambda _env: 1.0)
    words = ("--suite", write_suite(tmp_path), "--variants", "a=1.19.0 b=git:master", "--blocks", "1", "--workers", "1")
    for command in ("bench", "plan"):  # which has an image to look at when it comes second
        done = gpubench(command, *words, "--set", f"image.ucx_repository={repository.folder}")
        assert f"b: UCX 1.19.0 of commit {commit[:12]}\n" in done.stdout, done.stderr
        assert "a: UCX 1.19.0  (baseline)" in done.stdout


def test_a_site_with_images_of_another_kind_is_refused_at_once(gpubench: Run, tmp_path: Path) -> None:
    words = ("--variants", "v1.18.x v1.19.x", "--over", "commits", "--repo", tmp_path, "--runtime", "docker")
    done = gpubench("bisect", *words)
    assert (done.returncode, (tmp_path / "outputs").exists()) == (UsageError.exit_code, False)
    assert "--over commits builds images of kind venv, and site local has images of kind docker; add" in done.stderr


@pytest.mark.integration
def test_a_commit_is_whatever_git_takes_for_one(repository: Repository) -> None:
    commits = [repository.commit(f"commit {number}") for number in range(3)]
    repository.git("tag", "-a", "v1.19.0", "-m", "a release", commits[1])
    refs = {"master~2": 0, "HEAD^": 1, "HEAD^^": 0, "1.19.0": 1, "v1.19.0^0": 1, "master@{0}": 2, commits[2][:9]: 2}
    assert {ref: commit_named(repository.folder, ref) for ref in refs} == {ref: commits[at] for ref, at in refs.items()}
    for ref in ("-h", "--all", "^HEAD", "HEAD..master", "HEAD:NEWS", ""):
        with pytest.raises(UsageError, match="has no branch, tag or commit"):
            commit_named(repository.folder, ref)
    space = commits_of(["master~2,UCX_TLS=tcp", "b=HEAD,UCX_TLS=tcp"], repository.folder, load_site("local"))
    assert space.labels == ["master~2", commits[1][:10], "b"]
