"""README and the manual: each command is one that exists, those that need no cluster run, each file can be read."""

from __future__ import annotations

import ast
import inspect
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from markdown.extensions.toc import slugify

from gpubench.errors import EXIT_INCONCLUSIVE, EXIT_READER_GONE, EXIT_REGRESSION, GpubenchError
from gpubench.images.obtain import kind_of
from gpubench.model.base import parse_toml
from gpubench.model.known_issue import load_known_issues
from gpubench.node.spec.records import EXIT_NODE
from gpubench.plan.image_checks import check_image
from gpubench.resources.own_workloads import own_workloads
from gpubench.resources.profiles import load_site, load_suite
from gpubench.results.importers.formats import FORMATS
from gpubench.runtimes import RUNTIMES
from gpubench.stats.decision import OBSTACLES
from gpubench.stats.flags import raise_flags
from tests.cli.archive import draco_archive
from tests.conftest import ROOT, need, own_queue, plain_environment, run_gpubench
from tests.docs import manual
from tests.docs.manual import Command

GOLDEN = ROOT / "tests" / "golden" / "schemas" / "1"
FOREIGN = ROOT / "tests" / "importers" / "fixtures"
README = ROOT / "README.md"
ID = {"ids": lambda page: page.name}

ALWAYS = {
    *("compare", "diff", "images list", "logs", "report", "results fsck", "results import"),
    *("sites list", "sites prereqs", "suites list", "trend"),
}
"""Commands that run anywhere."""
MOST_ROWS = 150
"""Of the Draco history: all of it takes ten seconds to be searched for changes."""
FINDINGS = {0, 4, 20, 21}
"""Exit codes of a command that did what it is for."""
LABELS = {"1.17.0": "a", "1.19.0": "b"}
"""Variants of the manual's campaign, and of the one that stands in for it."""


def needs_no_cluster(path: str, given: dict[str, Any]) -> bool:
    return (
        path in ALWAYS
        or (path == "status" and not given["watch"])
        or (path == "sites check" and not given["live"])
        or (path == "results export" and given["form"] != "mlflow")
        or (path == "plan" and not given["images"])  # which it would build
    )


def provide(words: Sequence[str], folder: Path) -> None:
    """What a command of the manual finds: finished campaigns, tables of other tools."""
    for word in words:
        where = folder / word.rstrip("/")
        if re.fullmatch(r"outputs/[\w-]+", word) and not where.exists():
            shutil.copytree(GOLDEN / "campaign", where)
            if word == "outputs/on-kubernetes":  # a campaign beside its own copy is refused
                plan = json.loads((where / "plan.json").read_text())
                (where / "plan.json").write_text(json.dumps({**plan, "campaign": where.name}))
    copies = {
        "outputs-2022": FOREIGN / "dask_cuda",
        "parsl-perf-archive": FOREIGN / "mlflow",
        "imports/tiny": GOLDEN / "import",
        "outputs/tiny": GOLDEN / "campaign",
    }
    for name, source in copies.items():
        if not (folder / name).exists():
            shutil.copytree(source, folder / name)
    for name in ("a.out", "b.out"):
        shutil.copy(FOREIGN / "parsl_perf" / "estimate.out", folder / name)
    (folder / "joins.csv").write_text("seconds,build,day,n\n1.5,1.18.0,20261107,1000\n1.4,1.19.0,20261107,1000\n")
    rows = draco_archive().read_text(encoding="utf-8").splitlines()[:MOST_ROWS]
    (folder / "multi-node-merge.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def samples(folder: Path) -> None:
    """``samples.csv`` under the header that the manual shows, and ``mine.csv`` as it shows it."""
    mine, block = manual.blocks(ROOT / "docs" / "ci.md", "csv")
    (folder / "mine.csv").write_text(mine.text)
    head = block.text.partition("\n")[0]
    rows = [
        f"solver,1,{variant},{at},{variant}{at},{rep},{10 + at / 10 + rep / 50 + slower},{(order + at) % 2}"
        for at in range(6)
        for order, (variant, slower) in enumerate((("old", 0), ("new", 0.8 + at / 100)))
        for rep in range(3)
    ]
    (folder / "samples.csv").write_text("\n".join([head, *rows, ""]))


def of_hyperfine(folder: Path) -> None:
    """What the manual's calls of hyperfine leave, as far as ``table.py`` reads it, and its table."""
    for block in range(1, 7):
        results = [
            {
                "command": f"./{build} -t {threads}",
                "mean": slower * (8 + block / 50) / threads,
                "times": [slower * (8 + block / 50) / threads] * 10,
                "parameters": {"build": build, "threads": str(threads)},
            }
            for threads in (1, 8)
            for build, slower in ((("old", 1), ("new", 1.05 + block / 1000))[:: 1 if block % 2 else -1])
        ]
        (folder / f"{block}.json").write_text(json.dumps({"results": results}))
    (made,) = [one.text for one in manual.commands(ROOT / "docs" / "ci.md") if "> hyperfine.csv" in one.text]
    subprocess.run(["bash", "-c", made.replace("python", sys.executable, 1)], cwd=folder, check=True)


def test_results_of_hyperfine_become_a_table_that_is_judged(folder: Path) -> None:
    (judge,) = [one.text for one in manual.commands(ROOT / "docs" / "ci.md") if "compare hyperfine.csv" in one.text]
    done = run_gpubench(shlex.split(judge)[1:], folder, {})
    assert done.returncode == 20, done.stderr
    assert "the baseline is old, the variant of the first row" in done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("hyperfine threads=")]
    assert [" | 6 blocks | regression" in row for row in rows] == [True, True]
    assert "order-unknown" not in done.stdout


@pytest.mark.parametrize("number", [0, 1])
def test_a_table_of_the_manual_gives_the_verdict_below_it(folder: Path, number: int) -> None:
    table = manual.blocks(ROOT / "docs" / "ci.md", "csv")[number]
    verdicts = [block for block in manual.blocks(ROOT / "docs" / "ci.md", "text") if " blocks | " in block.text]
    name = verdicts[number].text.partition(" | ")[0]
    (folder / f"{name}.csv").write_text(table.text)
    columns = [] if "variant" in table.text else ["--columns", "variant=build,wall_s=seconds"]
    done = run_gpubench(["compare", f"{name}.csv", *columns], folder, {})
    assert done.stdout.splitlines()[0] == verdicts[number].text.strip()
    assert done.returncode == 20


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    manual.write_files(tmp_path)
    samples(tmp_path)
    of_hyperfine(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", manual.PAGES, **ID)
@pytest.mark.usefixtures("folder")
def test_every_command_exists_with_its_options_and_values(page: Path) -> None:
    faults = {str(command): manual.fault(command.text) for command in manual.commands(page)}
    assert {command: wrong for command, wrong in faults.items() if wrong} == {}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("gpubench bench --nodez 2", "No such option"),
        ("gpubench bensch", "no command bensch"),
        ("gpubench plan --site drako", "no site 'drako'"),
        ("gpubench plan --set layout.workerz=3", "unknown key"),
        ("make bench NODEZ=2", "there is no variable NODEZ"),
        ("make status NODES=2", "takes no NODES"),
    ],
)
def test_a_wrong_command_is_found(command: str, words: str) -> None:
    assert words in manual.fault(command)


@pytest.mark.parametrize("page", manual.PAGES, **ID)
def test_options_and_commands_within_sentences_exist(page: Path) -> None:
    reference = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    foreign = {"--bind", "--server-side", "--exclusive", "--directory"}
    for said in manual.INLINE.findall(manual.BLOCK.sub("", page.read_text(encoding="utf-8"))):
        words = said.split()
        if words[0] == "make" and len(words) > 1 and words[1].islower():
            assert f"\n{words[1]}:" in makefile, said
        if words[0] == "gpubench" and len(words) > 1 and words[1].islower() and "/" not in words[1]:
            assert f"## gpubench {words[1]}" in reference, said
        if words[0] in ("gpubench", "make") or words[0].startswith("--"):
            options = {word.partition("=")[0] for word in words if word.startswith("--")} - foreign - {"--help"}
            assert [one for one in options if f"`{one}`" not in reference and one != "--role"] == [], said


@pytest.mark.parametrize("page", [page for page in manual.PAGES if page.name not in manual.OWN_TEST], **ID)
def test_commands_that_need_no_cluster_run(page: Path, folder: Path) -> None:
    ran = 0
    for command in manual.commands(page):
        for words in manual.ours(command.text):
            path, given = manual.parse(words)
            if path == "submit" and not (given["campaign"] or given["go_on"] or given["here"]):
                words[0] = path = "plan"  # what can't be planned can't be submitted
                given = manual.parse(words)[1]
            if given and needs_no_cluster(path, given):
                ran += run(command, words, folder)
    if page.name in ("first-comparison.md", "report.md", "old-results.md", "slurm.md"):
        assert ran >= 4


def run(command: Command, words: list[str], folder: Path) -> bool:
    provide(words, folder)
    if {"multi-node-merge.csv", "imports/draco"} & {*words} and not (folder / "multi-node-merge.csv").exists():
        return False  # this project has no copy of that history
    environment = {"HOME": str(folder), **own_queue(folder), "XDG_CACHE_HOME": str(Path.home() / ".cache")}
    if words[0] in ("compare", "diff", "report") and not {
        "imports/draco",
        "samples.csv",
        "mine.csv",
        "hyperfine.csv",
    } & {*words}:
        words = [LABELS.get(word, word) for word in words]
    done = run_gpubench(words, folder, environment)
    assert done.returncode in FINDINGS, f"{command}: {done.returncode} {done.stderr}"
    if command.said is not None:
        assert_shown(command, done.stdout)
    return True


def assert_shown(command: Command, printed: str) -> None:
    """The page's lines are those that were printed; ``…`` is any text, a line ``…`` says that more lines were there."""
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    shown = [" ".join(line.split()) for line in (command.said or "").splitlines()]
    patterns = [re.escape(line).replace("…", ".*") for line in shown if line != "…"]
    if "…" not in shown:
        assert len(lines) == len(patterns), f"{command}\n{printed}"
    left = iter(lines)
    for pattern in patterns:
        assert any(re.fullmatch(pattern, line) for line in left), f"{command}: {pattern}\n{printed}"


def test_every_toml_block_is_a_file_that_can_be_read(folder: Path) -> None:
    kinds = []
    for block in [block for page in manual.PAGES for block in manual.blocks(page, "toml")]:
        named = manual.FILE.match(block.text)
        assert named, f"{block.page.name}: the first line says no name:\n{block.text}"
        keys = set(parse_toml(block.text, named[1]))
        if "issue" in keys:
            assert load_known_issues(block.text, named[1])
        elif "workload" in keys:
            suite, source = load_suite(named[1])
            assert suite.resolve(source, reps=None, timeout_s=1, own=own_workloads(suite, source.name))
        else:
            site = load_site(named[1])
            assert not [check.what for check in check_image(site, kind_of(site)) if not check.ok]
        kinds.append("issue" if "issue" in keys else "suite" if "workload" in keys else "site")
    assert set(kinds) == {"issue", "suite", "site"}


def test_python_blocks_can_be_compiled() -> None:
    found = [block for page in manual.PAGES for block in manual.blocks(page, "python")]
    assert found
    for block in found:
        compile(block.text, block.page.name, "exec")


def test_no_block_is_of_a_kind_that_nothing_here_looks_at() -> None:
    kinds = {block.kind for page in manual.PAGES for block in manual.blocks(page)}
    assert kinds == {"sh", "console", "toml", "yaml", "python", "csv", "text"}


def test_readme_is_short_and_its_links_lead_somewhere() -> None:
    text = README.read_text(encoding="utf-8")
    assert text.count("\n") <= 150
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert len(links) > 20
    for link in links:
        path, _, anchor = link.partition("#")
        assert (ROOT / path).is_file(), link
        if anchor:
            heads = re.findall(r"^#+ (.*)$", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in [slugify(head, "-") for head in heads], link
    for page in (ROOT / "docs").glob("*.md"):
        if page.name not in ("index.md", "suite-keys.md"):
            assert f"(docs/{page.name}" in text, f"README leads to no {page.name}"


def test_messages_of_the_troubleshooting_page_are_in_the_code() -> None:
    code = "\n".join(_texts_of_code())
    said = re.findall(r"^\| (`.*?`) \| ", (ROOT / "docs" / "troubleshooting.md").read_text(), re.MULTILINE)
    assert len(said) > 40
    for message in [one for cell in said for one in manual.INLINE.findall(cell)]:
        for part in re.split(r"…", message):
            assert part.strip(" ,.:;") in code, message


def _texts_of_code() -> list[str]:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "gpubench").rglob("*.py")]
    constants = (node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [text for text in constants if isinstance(text, str)]


def test_figures_of_the_verdicts_page_are_those_of_the_simulation() -> None:
    measured = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    _, _, table = (ROOT / "docs" / "verdict.md").read_text(encoding="utf-8").partition("| question | goal | result |\n")
    rows = [line.split(" | ") for line in table.partition("\n\n")[0].splitlines()[1:]]
    assert len(rows) >= 9
    assert [row[-1].rstrip(" |") for row in rows if row[-1].rstrip(" |") not in measured] == []


def test_tables_leave_nothing_out() -> None:
    """Suites, flags, reasons, exit codes, importers, runtimes with the kind of images that each starts."""
    flags = re.findall(r'^        "([a-z-]+)":', inspect.getsource(raise_flags), re.MULTILINE)
    codes = {one.exit_code for one in GpubenchError.__subclasses__()}
    codes |= {EXIT_REGRESSION, EXIT_INCONCLUSIVE, EXIT_NODE, EXIT_READER_GONE}
    named = {
        "suites.md": [path.stem for path in ROOT.glob("suites/*.toml")],
        "report.md": flags,
        "verdict.md": [*filter(None, OBSTACLES)],
        "old-results.md": FORMATS,
        "images.md": RUNTIMES,
    }
    assert len(flags) > 10
    for page, words in named.items():
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        assert [word for word in words if f"`{word}`" not in text] == [], page
    exits = (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    assert [code for code in codes if f"\n| {code} |" not in exits] == []
    images = (ROOT / "docs" / "images.md").read_text(encoding="utf-8")
    kinds = {"venv": "virtual environment", "docker": "container image", "squashfs": "squashfs file"}
    for name, runtime in RUNTIMES.items():
        kind = kinds.get(runtime.KIND, runtime.KIND)
        assert re.search(rf"^\| {kind}[^\n|]*\|[^\n|]*\|[^\n|]*`{name}`", images, re.MULTILINE), name


def build(config: Path, into: Path) -> subprocess.CompletedProcess[str]:
    need(bool(shutil.which("mkdocs", path=str(Path(sys.executable).parent))), "mkdocs: make .venv/.dev")
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", config, "-d", into],
        cwd=ROOT,
        env={**plain_environment(), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_manual_is_built_without_a_warning_and_its_pages_fetch_nothing(tmp_path: Path) -> None:
    done = build(ROOT / "mkdocs.yml", tmp_path)
    assert (done.returncode, "WARNING" in done.stderr) == (0, False), done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} <= {page.stem for page in pages}
    fetched = re.compile(r"""<(?:script|img|iframe|link(?=[^>]*stylesheet))[^>]*(?:src|href)=["']?(?:https?:)?//""")
    assert [page.name for page in pages if fetched.search(page.read_text(encoding="utf-8"))] == []


def test_a_link_to_nowhere_fails_the_build(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# Words\n\n[somewhere](report.md#report) [nowhere](report.md#nowhere)\n")
    (docs / "report.md").write_text("# Report\n")
    (tmp_path / "mkdocs.yml").write_text(f"INHERIT: {ROOT / 'mkdocs.yml'}\nnav: [index.md, report.md]\n")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 1
    assert "report.md#nowhere" in done.stdout + done.stderr
    assert "Aborted with 1 warnings" in done.stdout + done.stderr
