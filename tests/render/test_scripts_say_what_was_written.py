"""Whatever profile, variants and directory say: under bash, the commands of a job's script see it unchanged."""

import dataclasses
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from gpubench import resources
from gpubench.model.image import Image
from gpubench.model.known_issue import KnownIssue
from gpubench.model.plan import Plan
from gpubench.model.site import ContainerSettings, Paths, Setup
from gpubench.model.variant import Variant
from gpubench.node.spec import RunSpec
from gpubench.render.job import place_of
from gpubench.runtimes import RUNTIMES, Expanded
from tests.conftest import examples
from tests.plan.requests_by_hand import image, plan, site
from tests.rendering import render_jobs

TEMPLATES = resources.job_templates()
RUNS = ["one", "two", "three", "four"]
# The script's own commands. What they are given: how many words, and each word, with a NUL behind it.
STAND_INS = """
timeout() { return 1; }
module() { printf '%s\\0' "$2" >>"$SEEN/modules"; }
srun() { printf '%s\\0' "$#" "$@" >>"$SEEN/steps"; }
"""
NASTY = [
    *("$(touch x)", "`touch x`", "${HOME}", "$PATH", "$'x'", "!!", "~", "*", "#", "&&", ";", "'", '"', "\\", "\\n"),
    *("\n", " ", "-n", "--", "A=b", "%j", "é√", "漢字 🙂", "a=1: JobState=FAILED"),
]
# Everything that a command line can carry: no NUL, and no lone surrogates, which have no bytes.
letters = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
texts = st.lists(st.text(letters, max_size=6) | st.sampled_from(NASTY), max_size=3).map("".join)
words = texts.filter(bool)
lines = words.map(lambda text: "".join(filter(str.isprintable, text)) or "plain")
# Variables in it are put in on the node, as they shall be.
scratch = texts.map(lambda text: "/tmp/" + re.sub(r"\$(?=\w)", "", text))


@dataclasses.dataclass(frozen=True)
class Written:
    """What a person has typed somewhere; ``files`` are Python and image of each run, ``values`` its variable."""

    modules: list[str]
    options: list[str]
    scratch: str
    reason: str
    directory: str
    value: str
    values: list[str]
    files: list[tuple[str, str]]

    def plan(self, runtime: str) -> Plan:
        """One block; the last variant is left out for the reason."""
        kind = RUNTIMES[runtime].KIND
        images: dict[str, Image | None] = {
            name: image("1").model_copy(update={"kind": kind, "python": python, "reference": reference})
            for name, (python, reference) in zip(RUNS, self.files, strict=True)
        }
        where = site(
            scheduler="slurm",
            launcher="srun",
            runtime=runtime,
            env={"OF_SITE": self.value},
            setup=Setup(modules=self.modules),
            container=ContainerSettings(options=self.options),
            paths=Paths(scratch=self.scratch),
        )
        issue = {
            "name": "mine",
            "action": "skip",
            "reason": self.reason,
            "url": "https://u",
            "when": {"env": {"LEFT": "out"}},
        }
        left_out = {"LEFT": "out"}
        variants = [
            Variant(label=name, ucx=name, env={"OF_VARIANT": value, **(left_out if name == RUNS[-1] else {})})
            for name, value in zip(RUNS, self.values, strict=True)
        ]
        return plan(
            site=where,
            variants=variants,
            images=images,
            nodes=[2],
            blocks=1,
            known_issues=[KnownIssue.model_validate(issue)],
        )


def name_of_a_directory(text: str, runtime: str) -> str:
    """As near to ``text`` as can be; a newline at the end is what no shell's $(pwd) keeps."""
    name = "".join(letter for letter in text if letter not in f"/{RUNTIMES[runtime].MOUNT_SEPARATORS}").rstrip("\n")
    return name if name.strip(".") else "plain"


written = st.builds(
    Written,
    modules=st.lists(lines, max_size=2),
    options=st.lists(texts, max_size=2),
    scratch=scratch,
    reason=words,
    directory=texts,
    value=texts,
    values=st.lists(texts, min_size=4, max_size=4),
    files=st.lists(st.tuples(words, words), min_size=4, max_size=4),
)


@pytest.mark.integration
@pytest.mark.parametrize("runtime", ["venv", "pyxis", "apptainer", "enroot"])
@settings(max_examples=examples(20), phases=[Phase.generate])  # to shrink one takes minutes
@given(what=written)
def test_what_a_jobs_commands_see_is_what_was_written(runtime: str, what: Written) -> None:
    plan = what.plan(runtime)
    with tempfile.TemporaryDirectory() as home:
        campaign = Path(home) / name_of_a_directory(what.directory, runtime)
        for name, content in render_jobs(plan, plan.jobs, TEMPLATES, b"").items():
            (campaign / name).parent.mkdir(parents=True, exist_ok=True)
            (campaign / name).write_bytes(content)
        job = campaign / "jobs" / plan.jobs[0].job
        steps, modules = run(job, Path(home))
        assert modules == what.modules
        assert not list(Path(home).rglob("x"))
        variables = {"OUTDIR": campaign, "GPUBENCH_CAMPAIGN": campaign, "PWD": job, "SCRATCHDIR": what.scratch}
        ready = [tuple(RUNTIMES[runtime].make_ready(one.image)) for one in plan.variants[:-1] if one.image]
        ready = list(dict.fromkeys(filter(None, ready)))  # two variants may have one image
        assert [step[-1] for step in steps if step[-2] == "gpubench"] == [file for file, *_ in ready]
        assert sum(step[-1] == "pass" for step in steps) == (len(ready) if runtime == "pyxis" else 0)
        runs = [step for step in steps if "../../node.pyz" in step]
        for step, planned in zip(runs, plan.jobs[0].blocks[0].runs, strict=True):
            variant = plan.variants[RUNS.index(planned.variant)]
            assert variant.image
            path = f"specs/001-{planned.order}-{planned.run}.json"
            spec = RunSpec.parse((job / path).read_text(), path)
            assert spec.env == {**variant.image.env, "OF_SITE": what.value, **variant.env}
            command = RUNTIMES[runtime].command(variant.image, ["../../node.pyz", "run", "--spec", path])
            expected = [
                *(seen(word, variables) for word in RUNTIMES[runtime].prefix(place_of(plan.site, "cpu"))),
                *(seen(word, variables) for word in command),
            ]
            if planned.variant == RUNS[-1]:
                expected += ["--rank", "0", "--skip", f"known issue mine: {what.reason} (https://u)"]
            for here, there in zip(step[-len(expected) :], expected, strict=True):
                assert there in (here, None)


def seen(word: str, variables: Mapping[str, str | Path]) -> str | None:
    """``word`` with the script's variables put in; None where it holds others, which are the runtime's own."""
    if not isinstance(word, Expanded):
        return word
    names = re.findall(r"\$([A-Za-z_]+)", word)
    return re.sub(r"\$([A-Za-z_]+)", lambda at: str(variables[at[1]]), word) if set(names) <= set(variables) else None


def run(job: Path, home: Path) -> tuple[list[list[str]], list[str]]:
    """The words of every step, and the modules; the script must say nothing."""
    env = {"PATH": os.environ["PATH"], "SEEN": str(home), "SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2"}
    line = f"{STAND_INS}\ncd {shlex.quote(str(job))} && . ./job.sh"
    done = subprocess.run(["bash", "-c", line], env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")
    found = given_to(home / "steps")
    steps = []
    while found:
        count, found = int(found[0]), found[1:]
        steps.append(found[:count])
        found = found[count:]
    return steps, given_to(home / "modules")


def given_to(file: Path) -> list[str]:
    return file.read_bytes().decode().split("\0")[:-1] if file.exists() else []
