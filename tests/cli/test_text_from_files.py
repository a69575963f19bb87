"""Text from files is text: no command prints what acts on a terminal, whatever a campaign or a profile holds."""

import hashlib
import io
import json
import os
import pty
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import rich.live
import rich.markup
import rich.progress
import rich.text

from gpubench.cli.terminal import Terminal
from gpubench.model.images_lock import ImagesLock
from gpubench.model.text import visible
from gpubench.schedulers import local
from tests.conftest import GPUBENCH, ROOT, Run, own_queue, plain_environment
from tests.importing.nodes import row

GOLDEN = ROOT / "tests" / "golden" / "schemas" / "1"
HOSTILE = "\x1b[31m\x1b]0;t\x07\r\x08\x9b2J\x85\u202e\u2066\u200f\u2028<b>|&\nfalse: line"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
IN_TEXT = {"label", "variant", "baseline", "candidate", "reason", "source", "suite", "version"}
IN_LISTS = {"warnings", "notes", "hosts", "devices"}


def hostile(value: Any, key: str = "") -> Any:
    """The record with what acts on terminals behind its free texts."""
    if isinstance(value, dict):
        return {name: hostile(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [hostile(one, key) for one in value] + ([HOSTILE] if key in ("warnings", "notes") else [])
    return value + HOSTILE if isinstance(value, str) and key in IN_TEXT | IN_LISTS else value


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """A campaign whose labels, reasons, hosts, notes and warnings are hostile; one run of it has failed."""
    copy = Path(shutil.copytree(GOLDEN / "campaign", tmp_path / "tiny"))
    for path in (*copy.glob("*.json"), *copy.glob("plan.d/*.json"), *copy.glob("runs/*/*.json")):
        path.write_text(json.dumps(hostile(json.loads(path.read_text()))))
    failed = sorted(copy.glob("runs/*/run.json"))[0]
    failed.write_text(json.dumps(json.loads(failed.read_text()) | {"status": "failed"}))
    for job in copy.glob("jobs/*"):
        local._remember(job, 1, 0)
    return copy


@pytest.fixture
def import_copy(tmp_path: Path) -> Path:
    copy = Path(shutil.copytree(GOLDEN / "import", tmp_path / "import"))
    note = json.loads((copy / "import.json").read_text())
    note |= {"caution": HOSTILE, "name": f"import{HOSTILE}"}
    note["never_recorded"] += [HOSTILE]
    table = copy / "results.parquet"
    pl.read_parquet(table).with_columns(pl.col("variant", "workload", "file") + HOSTILE).write_parquet(table)
    note["results_sha256"] = hashlib.sha256(table.read_bytes()).hexdigest()
    (copy / "import.json").write_text(json.dumps(note))
    return copy


def assert_plain(text: str) -> None:
    assert [text[max(0, found.start() - 60) : found.end()] for found in RAW.finditer(text)] == []
    assert not re.search(r"(?m)^false: line", text)


OF_CAMPAIGNS = [
    ["plan", "X"],
    ["plan", "X", "--json"],
    ["status", "X"],
    ["logs", "X"],
    ["compare", "X"],
    ["compare", "X", "--json"],
    ["compare", "X", "--markdown"],
    *(["report", "X", "--only", only] for only in ("scaling", "runs")),
    *(["report", "X", "--only", only, "--json"] for only in ("scaling", "runs")),
    *(["report", "X", "--only", only, "--markdown"] for only in ("scaling", "runs")),
    ["report", "X"],
    ["trend", "X"],
    ["trend", "X", "--json"],
    ["results", "fsck", "X"],
    ["diff", f"a{HOSTILE}", f"b{HOSTILE}", "X"],
    ["diff", f"no{HOSTILE}", "b", "X"],
]


OF_IMPORTS = [["trend", "X"], ["report", "X", "--markdown"], ["compare", "X"], ["compare", "X", "--markdown"]]


@pytest.mark.parametrize(
    ("directory", "words"),
    [*(("campaign", words) for words in OF_CAMPAIGNS), *(("import_copy", words) for words in OF_IMPORTS)],
    ids=lambda value: value if isinstance(value, str) else visible("-".join(word for word in value if word != "X")),
)
def test_no_command_prints_what_a_record_or_an_import_says_to_the_terminal(
    gpubench: Run, request: pytest.FixtureRequest, directory: str, words: list[str]
) -> None:
    path = request.getfixturevalue(directory)
    done = gpubench(*(path if word == "X" else word for word in words))
    assert done.returncode != 1, done.stderr
    assert "a bug in gpubench" not in done.stderr
    assert_plain(done.stdout)
    assert_plain(done.stderr)
    if "--json" in words:
        json.loads(done.stdout)
    if "--markdown" in words and directory == "import_copy":
        assert "<b>" not in done.stdout


def test_reports_hold_it_escaped(gpubench: Run, campaign: Path, import_copy: Path) -> None:
    for directory in (campaign, import_copy):
        gpubench("report", directory, code=0)
        for name in ("report.html", "report.md"):
            text = (directory / name).read_text()
            own = re.sub(r"(?s)<script>.*?</script>", "", text)  # the library that draws charts
            assert_plain(own)
            assert "\\u001b[31m" in own or "\\u001b\\[31m" in own
            assert "<b>" not in own


def test_json_keeps_its_meaning(gpubench: Run, campaign: Path) -> None:
    shown = json.loads(gpubench("plan", campaign, "--json").stdout)
    assert [one["label"] for one in shown["variants"]] == [f"a{HOSTILE}", f"b{HOSTILE}"]


COLOURS = re.compile("\x1b\\[[0-9;]*m")


def on_a_terminal(directory: Path, *words: str | Path) -> str:
    """What a command prints on a terminal of 200 columns, without its own colours."""
    ours, theirs = pty.openpty()
    environment = plain_environment({**own_queue(directory), "COLUMNS": "200", "TERM": "xterm"})
    done = subprocess.Popen(
        [GPUBENCH, *words], cwd=directory, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(ours)
    done.wait()
    return seen.decode().replace("\r\n", "\n")


def test_nor_does_a_table_on_a_terminal(campaign: Path, tmp_path: Path) -> None:
    shown = on_a_terminal(tmp_path, "compare", campaign)
    assert "candidate vs baseline" in shown
    assert "\\u001b[31m" in shown
    label = shown.index("b\\u001b")
    assert "\x1b[31m" not in shown[label : label + 60]
    assert_plain(COLOURS.sub("", shown))


def test_an_error_ends_at_300_letters_and_still_says_what_to_do(gpubench: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(f'inherits = "local"\nname = "mine"\n{json.dumps(HOSTILE * 100)} = 1\n')
    done = gpubench("sites", "list", "mine.toml")
    assert done.returncode == 2
    assert_plain(done.stderr)
    (line,) = done.stderr.splitlines()
    assert (len(line), line[199]) == (300, "…")
    done = gpubench("plan", "--ucx", "1.16.0 1.22.0", "--set", f"interface={'x' * 500}")
    (line,) = done.stderr.splitlines()
    what, then = line.split("; ")
    assert (len(what), what[199]) == (300, "…")
    assert then == "--set interface=..., as `ip link` names it"


def test_a_profile_is_listed_and_shown_as_text(gpubench: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        f'inherits = "local"\nname = "mine"\ndescription = "x\\u202e\\u009b"\nenv = {{ A = {json.dumps(HOSTILE)} }}\n'
    )
    for words in (["sites", "list", "mine.toml"], ["sites", "check", "mine.toml"]):
        done = gpubench(*words)
        assert_plain(done.stdout + done.stderr)


def test_the_list_of_images_holds_what_stands_in_the_lock_as_text(gpubench: Run, tmp_path: Path) -> None:
    locked = row(site="local", digest="sha256:" + "1" * 64, ucx_version=f"[red]1.19.0{HOSTILE}")
    (tmp_path / "images.lock.toml").write_text(ImagesLock().with_rows([locked]).dump())
    done = gpubench("images", "list", env={"XDG_CACHE_HOME": str(tmp_path / "cache")}, code=0)
    assert "[red]" in done.stdout
    assert_plain(done.stdout)


def test_live_lines_and_bars_are_text(tmp_path: Path) -> None:
    terminal = Terminal(file=io.StringIO(), force_terminal=True, width=300, color_system=None)
    with rich.live.Live(console=terminal) as live:
        live.update(rich.text.Text(HOSTILE.replace("\n", "")))
        live.console.print(HOSTILE, markup=False)
    with rich.progress.Progress(console=terminal) as bars:
        bars.add_task(rich.markup.escape(HOSTILE))
    written = terminal.file.getvalue()  # type: ignore[attr-defined]
    assert "\\u202e" in written
    assert not RAW.search(re.sub("\x1b\\[[?0-9;]*[a-zA-Z]|\r", "", written))
    assert "\x1b[31m" not in written
    assert "\x1b]0" not in written
