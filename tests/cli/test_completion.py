"""What a shell completes, asked as the shells' scripts ask; and the options that stand before a command."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gpubench import __version__
from tests.conftest import GPUBENCH, ROOT, Run, need, own_queue, plain_environment

CAMPAIGN = ROOT / "tests" / "golden" / "schemas" / "1" / "campaign"


def completed(gpubench: Run, *words: str) -> list[str]:
    """What bash would be offered for the last of the words."""
    asked = ["gpubench", *words]
    done = gpubench(
        env={
            "_GPUBENCH_COMPLETE": "complete_bash",
            "COMP_WORDS": "\n".join(asked),
            "COMP_CWORD": str(len(asked) - 1),
        }
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_the_version_is_an_option_as_people_expect(gpubench: Run) -> None:
    done = gpubench("--version")
    assert (done.returncode, done.stdout) == (0, f"{__version__}\n")


def test_commands_and_options_are_completed(gpubench: Run) -> None:
    assert completed(gpubench, "re") == ["report", "results"]
    assert completed(gpubench, "cluster", "gr") == ["grow"]
    assert completed(gpubench, "bench", "--runt") == ["--runtime"]
    assert "--install-completion" in completed(gpubench, "--")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("plan", "--site", "dr"), ["draco"]),
        (("sites", "list", "local-s"), ["local-slurm"]),
        (("bench", "--suite", "ver"), ["verify"]),
        (("bench", "--runtime", "ap"), ["apptainer"]),
        (("bench", "--protocol", ""), ["tcp", "ucx"]),
        (("bench", "--ucx", "1.16"), ["1.16.0"]),
        (("images", "build", "1.16"), ["1.16.0"]),
        (("bench", "--ucx", "1.22.0,1.16"), ["1.22.0,1.16.0"]),
        (("measure", "merge", "--ucx", "1.22.0,1.1"), []),  # of one variant, others than its version follow a comma
        (("cluster", "start", "--protocol", "t"), []),  # tls too, which no campaign has
        (("cluster", "start", "--site", "dra"), ["draco"]),
        (("images", "build", "--site", "dra"), ["draco"]),
        (("measure", "transp"), ["transpose-sum"]),
        (("measure", "merge", "--backend", "expl"), ["explicit-comms"]),
        (("compare", str(CAMPAIGN), "--baseline", ""), ["a", "b"]),
    ],
)
def test_values_are_completed_from_where_they_are_listed(
    gpubench: Run, words: tuple[str, ...], expected: list[str]
) -> None:
    assert completed(gpubench, *words) == expected


def test_campaigns_are_completed_by_their_directories(gpubench: Run, tmp_path: Path) -> None:
    for name in ("one", "two", "with blank", "x$(touch y)", "'quoted'"):
        shutil.copytree(CAMPAIGN, tmp_path / "outputs" / name)
    (tmp_path / "outputs" / "clusters").mkdir()
    both = ["outputs/one", "outputs/two"]
    for command in (
        ["status"],
        ["cancel"],
        ["compare"],
        ["bench", "--campaign"],
        ["results", "export", "csv"],
        ["results", "fsck"],
    ):
        assert completed(gpubench, *command, "outputs/") == both, command
    assert completed(gpubench, "compare", "outputs/one", "outputs/t") == ["outputs/two"]
    (tmp_path / "outputs").rename(tmp_path / "elsewhere")
    assert completed(gpubench, "status", "--outputs", "elsewhere", "else") == ["elsewhere/one", "elsewhere/two"]
    assert completed(gpubench, "status", "") == []


def test_files_that_cant_be_read_complete_nothing_and_say_nothing(gpubench: Run, tmp_path: Path) -> None:
    (tmp_path / "images.lock.toml").write_text("no toml")
    (tmp_path / "outputs" / "torn").mkdir(parents=True)
    (tmp_path / "outputs" / "torn" / "plan.json").write_text("{")
    assert completed(gpubench, "bench", "--ucx", "1.16") == []
    assert completed(gpubench, "compare", "--baseline", "") == []


def test_zsh_and_fish_are_answered_in_their_own_ways(gpubench: Run) -> None:
    words = {"_TYPER_COMPLETE_ARGS": "gpubench plan --site dr"}
    zsh = gpubench(env={"_GPUBENCH_COMPLETE": "complete_zsh", **words})
    assert zsh.stdout == "_arguments '*: :((\"draco\"))'\n"
    action = {"_GPUBENCH_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    assert gpubench(env={**action, **words}).stdout == "draco\n"


def test_bash_completes_with_the_script_that_is_shown(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    need(bash is not None, "bash")
    script = """
        source <(gpubench --show-completion)
        complete -p gpubench
        COMP_WORDS=(gpubench plan --site dr) COMP_CWORD=3
        _gpubench_completion gpubench
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    path = f"{GPUBENCH.parent}{os.pathsep}{os.environ['PATH']}"
    env = plain_environment({**own_queue(tmp_path), "PATH": path})
    done = subprocess.run(
        [str(bash), "--norc", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["complete -o default -F _gpubench_completion gpubench", "draco"]


ZSH = r"""
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'PROMPT=; autoload -U compinit; compinit -u -D; source <(gpubench --show-completion)
           show() { print -r -- "<<"$BUFFER">>"; BUFFER=; }; zle -N show; bindkey "^I" complete-word; bindkey "^X" show
           print REA""DY'
zpty -r -m z out '*READY*'
for line in "$@"; do
    zpty -w -n z "$line"$'\t\x18'
    zpty -r -m z out '*<<*>>*'
    print -r -- "${${out##*<<}%%>>*}"
done
"""
"""Types each of its arguments and a tab into an interactive zsh, and prints what stands there then."""
FISH = """
gpubench --show-completion | source
for line in $argv; complete -C $line; end
"""


@pytest.mark.system
@pytest.mark.parametrize(
    ("shell", "script", "expected"),
    [
        ("zsh", [ZSH, "zsh"], ["gpubench plan --site draco "]),
        ("fish", [FISH], ["draco"]),
    ],
)
def test_zsh_and_fish_complete_a_value(tmp_path: Path, shell: str, script: list[str], expected: list[str]) -> None:
    need(shutil.which(shell) is not None, shell)
    path = f"{GPUBENCH.parent}{os.pathsep}{os.environ['PATH']}"
    env = plain_environment({**own_queue(tmp_path), "PATH": path, "HOME": str(tmp_path), "TERM": "xterm"})
    done = subprocess.run(
        [shell, "-c", *script, "gpubench plan --site dr"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.splitlines() == expected, done.stderr


def test_the_script_is_put_where_the_shell_reads_it(tmp_path: Path) -> None:
    need(shutil.which("bash") is not None, "bash")
    path = f"{GPUBENCH.parent}{os.pathsep}{os.environ['PATH']}"
    env = plain_environment({**own_queue(tmp_path), "PATH": path, "HOME": str(tmp_path)})
    script = "gpubench --install-completion && gpubench --show-completion; exit"
    done = subprocess.run(
        ["bash", "--norc", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    assert (tmp_path / ".bash_completions" / "gpubench.sh").read_text().strip() in done.stdout
    assert "gpubench.sh" in (tmp_path / ".bashrc").read_text()
