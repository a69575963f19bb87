"""Build contexts: compared with files that a person has read. GPUBENCH_UPDATE_GOLDEN=1 rewrites them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench import resources
from gpubench.images.recipes import recipes
from gpubench.model.recipe import Recipe
from gpubench.model.site import ImageSettings
from gpubench.render.conda import render_modules, render_prefix
from gpubench.render.context import PYTHON, BuildContext, render_context
from gpubench.resources.profiles import load_site
from tests.rendering import check_golden, check_shell

GOLDEN = Path(__file__).parents[1] / "golden" / "docker"
TEMPLATES = resources.texts("templates")
DOCKER = resources.docker_file("")
SOURCES = {str(path.relative_to(DOCKER)): path.read_bytes() for path in DOCKER.rglob("*") if path.is_file()}
SHA = "0123456789abcdef0123456789abcdef01234567"
FABRIC = 'image.fabric=["rdmacm", "verbs"]'
CASES = {
    "local/wheel": ("local", "1.16.0"),
    "local/git": ("local", f"v1.18.x@{SHA}"),
    "local/distribution": ("local", "distribution"),
    "local/none": ("local", "none"),
    "draco/git-conda": ("draco", f"v1.14.x@{SHA}"),
    "draco/git-conda-unresolved": ("draco", "master"),
    "deepops/git-conda": ("deepops", f"v1.14.x@{SHA}"),
    "perlmutter/git": ("perlmutter", f"git:v1.22.0@{SHA}", FABRIC),
    "perlmutter/none": ("perlmutter", "none", FABRIC),
}


def recipe(site: str, spec: str, *settings: str) -> Recipe:
    """A recipe of a shipped profile, but for ``settings``, whose repository doesn't answer."""
    found = load_site(site, ["image.ucx_repository=file:///nowhere/ucx.git", *settings])
    return recipes([spec], found)[0]


def context(made: Recipe, gpubench: str = "0.1.0") -> BuildContext:
    return render_context(made, TEMPLATES, SOURCES, gpubench=gpubench)


def build_id(made: BuildContext) -> str:
    return made.labels["io.gpubench.build-id"]


RECIPES = {name: recipe(*case) for name, case in CASES.items()}
CONTEXTS = {name: context(made) for name, made in RECIPES.items()}
SHOWN = ("Dockerfile", "environment.yml", "ucx.txt")
FILES = [(name, file) for name, made in CONTEXTS.items() for file in SHOWN if file in made.files]


def test_ucx_of_a_conda_prefix_is_built_with_the_cuda_that_the_profile_names() -> None:
    """On a Cray, CUDA comes by a module."""
    (made,) = recipes([f"git:v1.16.0@{'0' * 40}"], load_site("perlmutter"))
    script = render_prefix(made, TEMPLATES, SOURCES, "/shared").files["create.sh"].decode()
    assert '"--with-cuda=$CUDA_HOME" "LDFLAGS=-Wl,-rpath,$CUDA_HOME/lib64"' in script
    assert 'cuda=$(set +u && echo "$CUDA_HOME")\n' in script
    dockerfile = render_context(made, TEMPLATES, SOURCES, gpubench="0").files["Dockerfile"].decode()
    assert " --with-cuda=/usr/local/cuda " in dockerfile


@pytest.mark.parametrize(("name", "file"), FILES)
def test_a_rendered_file_is_what_a_person_has_read(name: str, file: str) -> None:
    made = CONTEXTS[name]
    # Both change with every edit of a lock or of a file of the context.
    text = made.files[file].decode().replace(build_id(made), "BUILD-ID")
    text = text.replace(made.labels["io.gpubench.lock"], "LOCK-HASH")
    check_golden(GOLDEN / name / file, text)


def test_no_golden_file_is_left_over() -> None:
    stored = {str(path.relative_to(GOLDEN)) for path in GOLDEN.rglob("*") if path.is_file()}
    assert stored == {f"{name}/{file}" for name, file in FILES} | {"conda/create.sh", "modules/load.sh"}


@pytest.mark.parametrize("name", CASES)
def test_a_dockerfile_passes_hadolint(name: str, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_bytes(CONTEXTS[name].files["Dockerfile"])
    words = [Path(sys.executable).with_name("hadolint"), "--no-color", tmp_path / "Dockerfile"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=150, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("name", CASES)
def test_the_same_recipe_gives_the_same_bytes(name: str) -> None:
    copy = Recipe.model_validate(json.loads(json.dumps(RECIPES[name].model_dump())))
    turned = dict(reversed(TEMPLATES.items())), dict(reversed(SOURCES.items()))
    assert render_context(copy, *turned, gpubench="0.1.0") == CONTEXTS[name]


def test_whatever_goes_in_changes_the_build_id() -> None:
    made = RECIPES["local/wheel"]
    others = [
        context(made.model_copy(update={"spec": "ucx-1.16.0"})),
        context(made.model_copy(update={"base": "debian:13"})),
        context(made, gpubench="0.2.0"),
        *(
            render_context(made, TEMPLATES, {**SOURCES, name: SOURCES[name] + b"#"}, gpubench="0.1.0")
            for name in (made.lock, "context/describe.py", "context/gpubench", "venv/libucx.py")
        ),
    ]
    assert len({build_id(CONTEXTS["local/wheel"]), *map(build_id, others)}) == len(others) + 1


def test_the_lock_of_another_stack_changes_nothing() -> None:
    sources = {**SOURCES, "locks/ucxx-0.52.0.txt": b""}
    made = render_context(RECIPES["local/wheel"], TEMPLATES, sources, gpubench="0.1.0")
    assert made.files == CONTEXTS["local/wheel"].files


@pytest.mark.parametrize("name", CASES)
def test_every_file_of_the_context_is_copied_and_every_copied_one_is_there(name: str) -> None:
    files = CONTEXTS[name].files
    copies = re.findall(r"^COPY (?!--from)(.+) \S+$", files["Dockerfile"].decode(), re.MULTILINE)
    assert {word for words in copies for word in words.split()} == files.keys() - {"Dockerfile"}


def test_versions_differ_first_behind_the_stack() -> None:
    one, other = (context(recipe("local", spec)).files for spec in ("1.16.0", "1.22.0"))
    shared = one["Dockerfile"].decode().partition("FROM stack AS ucx")[0].splitlines()[1:]
    assert other["Dockerfile"].decode().splitlines()[1 : len(shared) + 1] == shared
    assert {name for name in one if one[name] != other[name]} == {"Dockerfile", "build.json", "ucx.txt"}


def test_the_manifest_is_written_by_the_last_step() -> None:
    for made in CONTEXTS.values():
        steps = re.findall(r"^(?:RUN|COPY|ADD) .*$", made.files["Dockerfile"].decode(), re.MULTILINE)
        assert steps[-1] == f'RUN ["{PYTHON}", "-I", "-B", "/gpubench/describe.py"]'


@given(spec=st.text(max_size=30), gpubench=st.text(max_size=30), site=st.text(max_size=10))
def test_no_text_becomes_an_instruction(spec: str, gpubench: str, site: str) -> None:
    odd = RECIPES["local/git"].model_copy(update={"spec": spec, "site": site})
    plain = CONTEXTS["local/git"].files["Dockerfile"].decode()
    try:
        made = context(odd, gpubench=gpubench)
    except ValueError:
        return  # a control character: nothing is rendered
    dockerfile = made.files["Dockerfile"].decode()

    def instructions(text: str) -> list[str]:
        return [line.split(" ")[0] for line in text.split("\n") if re.match(r"[A-Z]+ ", line)]

    assert instructions(dockerfile) == instructions(plain)
    assert dockerfile.count("\n") == plain.count("\n")
    assert len(dockerfile.splitlines()) == len(plain.splitlines())
    # What the engine reads between the quotes is what was put in.
    value = re.search(r'io\.gpubench\.ucx-spec="((?:[^"\\]|\\.)*)"', dockerfile)
    assert value
    assert re.sub(r"\\(.)", r"\1", value[1]) == spec


def test_a_conda_prefix_is_named_by_its_content_and_its_script_is_sound(tmp_path: Path) -> None:
    made = RECIPES["deepops/git-conda"]
    prefix = render_prefix(made, TEMPLATES, SOURCES, "/shared/o'neill & co")
    facts = json.loads(prefix.files["build.json"])
    key = facts["build_id"]
    assert prefix.path == f"/shared/o'neill & co/conda/ucx-py-0.35-{key}"
    check_golden(GOLDEN / "conda" / "create.sh", prefix.files["create.sh"].decode().replace(key, "KEY"))
    check_shell(tmp_path / "create.sh", prefix.files["create.sh"])
    assert facts["env"]["LD_LIBRARY_PATH"] == f"{prefix.path}/ucx/lib"
    assert render_prefix(made, TEMPLATES, SOURCES, "/shared").path == f"/shared/conda/ucx-py-0.35-{key}"
    other_describe = {**SOURCES, "context/describe.py": b""}
    others = [
        render_prefix(RECIPES["draco/git-conda"], TEMPLATES, SOURCES, "/shared"),
        render_prefix(made, TEMPLATES, other_describe, "/shared"),
    ]
    assert len({key, *(other.path.rpartition("-")[2] for other in others)}) == 3


@pytest.mark.parametrize("name", ["perlmutter/git", "local/wheel"])
def test_a_prefix_of_wheels_reads_only_what_lies_beside_its_script(name: str, tmp_path: Path) -> None:
    files = render_prefix(RECIPES[name], TEMPLATES, SOURCES, "/shared").files
    text = files["create.sh"].decode()
    check_shell(tmp_path / "create.sh", text)
    named = {word for word in files if re.search(rf"\s{re.escape(word)}\s", text)}
    assert named == files.keys() - {"create.sh"}
    assert files["environment.yml"].decode().endswith("dependencies:\n  - pip\n  - python=3.11\n")


def test_a_prefix_whose_commit_is_open_says_so_and_makes_nothing(tmp_path: Path) -> None:
    files = render_prefix(RECIPES["draco/git-conda-unresolved"], TEMPLATES, SOURCES, str(tmp_path / "images")).files
    (tmp_path / "create.sh").write_bytes(files["create.sh"])
    done = subprocess.run(
        ["bash", str(tmp_path / "create.sh")], capture_output=True, text=True, timeout=150, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "gpubench: UCX master was not resolved to a commit; render again where its repository answers\n"
    )
    assert not (tmp_path / "images").exists()


def test_modules_are_loaded_in_their_order(tmp_path: Path) -> None:
    names = ["gcc/7.4.0", "cuda/10.1.243", "ucx/{ucx}"]
    settings = ImageSettings(modules=names, prefix="/ccs/proj/o'neill/{ucx}")
    text = render_modules("summit", settings, "1.8.0", TEMPLATES)
    check_golden(GOLDEN / "modules" / "load.sh", text)
    turned = settings.model_copy(update={"modules": names[::-1]})
    assert render_modules("summit", turned, "1.8.0", TEMPLATES) != text
    check_shell(tmp_path / "load.sh", text)
    bare = render_modules("summit", ImageSettings(modules=names[:1]), "1.8.0", TEMPLATES)
    assert "export" not in bare
