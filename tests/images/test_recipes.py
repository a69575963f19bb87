"""Which stack and which UCX a spec becomes on a site; refs of a real repository."""

import socket
from pathlib import Path
from typing import Any

import pytest

from gpubench.errors import MissingToolError, PlanRefusedError, UsageError
from gpubench.images.compatibility import base_python, newest_cuda
from gpubench.images.recipes import commit_of, recipes, refs, unresolved
from gpubench.images.wheels import resolve
from gpubench.model.recipe import Recipe
from gpubench.model.site import Site
from gpubench.resources.profiles import load_site
from tests.images.conftest import git

SHA = "0123456789abcdef0123456789abcdef01234567"
NOWHERE = "file:///nowhere/ucx.git"
GIT = f"v1.14.x@{SHA}"


def site(name: str = "local", **settings: Any) -> Site:
    """A shipped profile, whose repository doesn't answer."""
    found = load_site(name)
    image = found.image.model_copy(update={"ucx_repository": NOWHERE, **settings})  # unchecked: recipes check it
    return found.model_copy(update={"image": image})


def one(spec: str, where: Site, **more: str) -> Recipe:
    (made,) = recipes([spec], where, **more)
    return made


@pytest.mark.parametrize(
    ("name", "spec", "becomes"),
    [
        ("local", "1.16.0", ("wheel", "1.16.0.post2", "ucxx-0.45.1", "ucxx", "")),
        ("local", "wheel:1.22.0", ("wheel", "1.22.0", "ucxx-0.45.1", "ucxx", "")),
        ("local", "git:v1.16.0", ("git", "v1.16.0", "ucxx-0.45.1", "ucxx", "")),
        ("local", "master", ("git", "master", "ucxx-0.45.1", "ucxx", "")),
        ("local", "1.14.1", ("git", "v1.14.1", "ucx-py-0.35", "ucx-py", "")),
        ("local", "distribution", ("distribution", "distribution", "ucxx-0.45.1", "ucxx", "")),
        ("local", "none", ("none", "none", "ucxx-0.45.1", "none", "")),
        ("perlmutter", "1.16.0", ("wheel", "1.16.0.post2", "ucxx-0.45.1", "ucxx", "12.9")),
        ("perlmutter", "v1.14.x", ("git", "v1.14.x", "ucx-py-0.35", "ucx-py", "11.8")),
        ("draco", "v1.14.x", ("git", "v1.14.x", "ucx-py-0.35", "ucx-py", "11.2")),
        ("draco", "master", ("git", "master", "ucx-py-0.29", "ucx-py", "11.2")),
        ("deepops", "1.13.1", ("git", "v1.13.1", "ucx-py-0.35", "ucx-py", "11.8")),
    ],
)
def test_a_spec_becomes_a_source_a_version_a_stack_a_binding_and_a_cuda(
    name: str, spec: str, becomes: tuple[str, ...]
) -> None:
    made = one(spec, site(name))
    assert (made.source, made.ucx_version, made.stack, made.binding, made.cuda) == becomes
    assert made.spec == spec


@pytest.mark.parametrize(
    ("base", "runtime", "stack"),
    [
        ("debian:12", "docker", "ucxx-0.45.1"),
        ("nvidia/cuda:12.8.1-devel-ubuntu22.04", "conda", "ucxx-0.45.1"),
        ("nvidia/cuda:12.8.1-devel-ubuntu22.04", "apptainer", ""),
        ("debian:11-slim", "docker", ""),
    ],
)
def test_a_stack_of_wheels_needs_a_base_whose_distribution_has_its_python(base: str, runtime: str, stack: str) -> None:
    where = site("polaris", base=base).model_copy(update={"runtime": runtime})
    if stack:
        assert one("1.19.0", where).stack == stack
        return
    with pytest.raises(PlanRefusedError, match=rf"it needs Python 3.11 to 3.13, image.base {base} has 3\.") as caught:
        one("1.19.0", where)
    assert "\n" not in str(caught.value)


def test_a_wheel_is_pinned_by_the_hash_of_the_sites_architecture() -> None:
    wheel = resolve("1.16.0")
    for architecture in ("x86_64", "aarch64"):
        assert one("1.16.0", site(architecture=architecture)).wheel_sha256 == wheel.sha256[architecture]


def test_specs_share_a_stack_where_one_can_carry_them_all() -> None:
    campaign = ["v1.12.x", "v1.13.x", "v1.14.x", "master"]
    assert {made.stack for made in recipes(campaign, site("draco"))} == {"ucx-py-0.29"}
    assert {made.stack for made in recipes(campaign[:3], site("draco"))} == {"ucx-py-0.35"}
    assert {made.stack for made in recipes(["1.16.0", "none", "1.22.0"], site())} == {"ucxx-0.45.1"}


def test_specs_that_no_stack_carries_together_each_get_their_own() -> None:
    assert [made.stack for made in recipes(["v1.12.x", "1.22.0"], site())] == ["ucx-py-0.35", "ucxx-0.45.1"]


DEEPOPS, VERBS = site("deepops"), site("perlmutter", fabric=["rdmacm", "verbs"])


def test_a_stack_can_be_forced() -> None:
    assert one("1.22.0", site(), stack="ucxx-0.52.0").stack == "ucxx-0.52.0"
    old = one("none", site(base="debian:11"), stack="dask-2023.3.2")
    assert (old.stack, old.python, old.scheme, old.base) == ("dask-2023.3.2", "3.9", "tcp", "debian:11")
    with pytest.raises(UsageError, match=r"no stack 'ucxx-0\.45\.2' \(did you mean 'ucxx-0\.45\.1'\?\)"):
        one("1.22.0", site(), stack="ucxx-0.45.2")


@pytest.mark.parametrize(
    ("where", "spec", "stack", "says"),
    [
        (
            DEEPOPS,
            "1.16.0",
            "",
            r"25\.08 needs compute capability 7\.0, the GPUs have 6\.1.*: 1\.15\.0 \(stack ucx-py-0\.35",
        ),
        (DEEPOPS, "1.16.0", "ucxx-0.45.1", r"6\.1\); nearest: stack ucx-py-0\.35 \(runs UCX 1\.12\.0 to 1\.15\.0\)"),
        (
            site("draco"),
            "1.22.0",
            "",
            r"needs CUDA 12\.2, driver and GPUs run 11\.2.*: 1\.15\.0 \(stack ucx-py-0\.35\)",
        ),
        (site("summit"), "1.16.0", "", r"no packages for ppc64le.*own software: an image of kind modules or conda"),
        (
            site(),
            "1.11.2",
            "",
            r"ucx-py-0\.29: runs UCX 1\.12\.0 to 1\.14\.1.*nearest: 1\.12\.0 \(stack ucx-py-0\.35\)",
        ),
        (site(), "1.25.0", "", r"nearest: 1\.22\.0 \(stack ucxx-0\.45\.1\)"),
        (site(), "1.16.0", "dask-2023.3.2", r"has no binding for UCX.*nearest: none, which runs protocol tcp"),
        (VERBS, "wheel:1.16.0", "", r"site perlmutter: wheels are built without rdmacm and verbs, .*write 1\.16\.0"),
        (site("perlmutter", fabric=["verbs"]), "1.16.0.post1", "", "wheels are built without verbs"),
        (site(), "wheel:1.14.1", "", r"ucx-py of stack ucx-py-0\.35 is compiled against UCX's own headers"),
    ],
)
def test_what_cant_run_is_refused_with_the_reason_and_the_nearest_that_can(
    where: Site, spec: str, stack: str, says: str
) -> None:
    with pytest.raises(PlanRefusedError, match=says):
        one(spec, where, stack=stack)


def test_a_ucx_for_gpus_is_not_compiled_without_cuda() -> None:
    """Wheels have it in any case."""
    spec, gpus = f"v1.18.x@{'0' * 40}", ['device="gpu"']
    with pytest.raises(PlanRefusedError, match=r"site local doesn't say for which CUDA: .*; .*--set image\.cuda=12\.4"):
        recipes([spec], load_site("local", gpus))
    (made,) = recipes([spec], load_site("local", [*gpus, 'image.cuda="12.4"']))
    assert made.cuda == "12.4"
    assert recipes(["1.18.0"], load_site("local", gpus))[0].source == "wheel"


def test_cuda_is_bounded_by_driver_gpu_and_stack() -> None:
    assert newest_cuda("13.0", "7.0") == "12.9"
    assert newest_cuda("13.0", "8.0") == "13.0"
    assert newest_cuda("12.4", "7.0") == "12.4"
    assert newest_cuda("", "7.0") == ""
    newer = site("perlmutter", cuda="13.0")
    assert one("1.22.0", newer).cuda == "12.9"


def test_a_commit_pinned_by_hand_asks_nobody() -> None:
    made = one(GIT, site("draco"))
    assert (made.ucx_commit, made.ucx_version, made.ucx_repository) == (SHA, "v1.14.x", NOWHERE)


def test_a_silent_repository_leaves_the_commit_open() -> None:
    made = recipes(["v1.14.x", "1.16.0"], site())
    assert [(unresolved(item), item.ucx_commit) for item in made] == [(True, ""), (False, "")]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"fabric": ["verb"]}, r"image\.fabric: unknown word 'verb' \(did you mean 'verbs'\?\)"),
        ({"packages": ["libx", "a; rm -rf /"]}, r"image\.packages: 'a; rm -rf /' is no package"),
        ({"ucx_repository": "https://me:planted@host/ucx.git"}, r"image\.ucx_repository holds credentials"),
        ({"base": "debian:12\nRUN true"}, "is no name of an image"),
        ({"base": "--privileged"}, "is no name of an image"),
    ],
)
def test_a_value_that_would_mean_something_else_in_a_dockerfile_is_refused(settings, says: str) -> None:
    with pytest.raises(UsageError, match=says) as refused:
        one("1.16.0", site(**settings))
    assert "planted" not in str(refused.value)


def test_a_tag_holds_the_spec_as_typed_and_two_specs_never_share_one() -> None:
    assert one("v1.14.x", site()).tag("20261121") == "ucx-py-v1.14.x-20261121"
    slash, dash = (one(spec, site()).tag("20261121") for spec in ("topic/rndv", "topic-rndv"))
    assert dash == "ucx-py-topic-rndv-20261121"
    assert slash.startswith("ucx-py-topic-rndv-")
    assert slash != dash


@pytest.mark.parametrize(
    ("name", "settings", "lock"),
    [
        ("local", [], "locks/ucxx-0.45.1.txt"),
        ("local-gpu", [], "locks/ucxx-0.45.1-gpu.txt"),
        ("perlmutter", [], "locks/ucxx-0.45.1-gpu.txt"),
        ("perlmutter", ['device="cpu"'], "locks/ucxx-0.45.1.txt"),
        ("local", ['device="auto"'], "locks/ucxx-0.45.1.txt"),
        ("local", ['device="auto"', "node.gpus=2"], "locks/ucxx-0.45.1-gpu.txt"),
        ("kubernetes", ['device="auto"', 'image.cuda="12.4"'], "locks/ucxx-0.45.1-gpu.txt"),
    ],
)
def test_images_hold_what_gpu_workers_load_where_there_are_gpus(name: str, settings: list[str], lock: str) -> None:
    (made,) = recipes(["1.19.0"], load_site(name, settings))
    assert made.lock == lock


@pytest.mark.parametrize(
    ("base", "python"),
    [
        ("nvidia/cuda:12.4.1-devel-ubuntu22.04", "3.10"),
        ("registry.example.org/nvidia/cuda:12.8.1-devel-ubuntu24.04", "3.12"),
        ("docker.io/library/debian:12", "3.11"),
        ("ubuntu:20.04", "3.8"),
        ("ubuntu:24.04", "3.12"),
        # What such images have is their makers' choice.
        ("rapidsai/citestwheel:25.08-cuda12.9.1-ubuntu22.04-py3.11", ""),
        ("site/base-ubuntu22.04-python312:1", ""),
        ("debian", ""),
    ],
)
def test_the_python_of_a_base_is_known_of_distributions_and_nvidias_own_images(base: str, python: str) -> None:
    assert base_python(base) == python


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``master`` ahead of ``v1.14.x``; ``v1.14.1`` an annotated tag, ``light`` none, ``both`` tag and branch."""
    folder = tmp_path_factory.mktemp("ucx")
    git(folder, "init", "-q", "-b", "master")
    git(folder, "commit", "-q", "--allow-empty", "-m", "old")
    git(folder, "branch", "v1.14.x")
    git(folder, "branch", "topic/rndv")
    git(folder, "tag", "-a", "v1.14.1", "-m", "annotated")
    git(folder, "tag", "light")
    git(folder, "tag", "both")
    git(folder, "commit", "-q", "--allow-empty", "-m", "new")
    git(folder, "branch", "both")
    return folder


@pytest.mark.parametrize("ref", ["v1.14.x", "topic/rndv", "v1.14.1", "light", "both"])
def test_a_branch_or_tag_is_its_commit(repository: Path, ref: str) -> None:
    assert commit_of(str(repository), ref) == git(repository, "rev-parse", "master~1")


def test_an_unknown_ref_names_the_nearest(repository: Path) -> None:
    with pytest.raises(UsageError, match=r"has no branch or tag 'v1\.14\.y'; nearest: v1\.14\.[1x]"):
        commit_of(str(repository), "v1.14.y")


def test_a_repository_that_is_not_there_is_a_missing_tool(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError, match=r"nowhere doesn't answer \(.*\); check the network and image.ucx_repos"):
        refs(f"file://{tmp_path}/nowhere")


def test_a_repository_named_like_an_option_is_no_option(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError, match="doesn't answer"):
        refs(f"--upload-pack=touch {tmp_path}/owned")
    assert not (tmp_path / "owned").exists()


def test_credentials_in_an_address_are_not_printed() -> None:
    with pytest.raises(MissingToolError) as refused:
        refs("http://user:planted-secret@127.0.0.1:9/ucx.git")
    assert "planted-secret" not in str(refused.value)


def test_a_repository_that_accepts_and_never_answers_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpubench.images.recipes.LISTING_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(MissingToolError, match="no answer within 1 s"):
            refs(f"git://127.0.0.1:{port}/ucx.git")


def test_without_git_the_message_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match="git, which resolves UCX branches, is not installed; install git"):
        refs(str(tmp_path))
