"""What was written is what processes on a real Slurm's nodes see: names of directories, and values of variables."""

from __future__ import annotations

import json

import pytest

from gpubench.store.rundirs import read_provenance
from tests.cli.campaigns import records
from tests.slurm.campaigns import UCX, Login, job_ids
from tests.slurm.test_campaigns_in_containers import user

pytestmark = pytest.mark.system
__all__ = ["user"]

VALUES = {
    "GB_BLANKS": "  a  b ",
    "GB_QUOTES": 'it\'s "quoted" `date`',
    "GB_SUBSTITUTION": "$(date) ${HOME} $PATH !! ~ *",
    "GB_LINES": "one\ntwo\\n\ttab\\",
    "GB_UNICODE": "ü 漢字 🙂",
    "GB_SHELL": "; exit 1 # & | > out",
}
PLACES = {
    "venv": 'o\'dd "name" $(date), `x` a=1: JobState=FAILED ü',
    "pyxis": 'o\'dd "name" $(date) `x` a=1 JobState=FAILED ü',  # its grammar parts mounts by commas and colons
    "enroot": 'o\'dd "name" $(date), `x` a=1 JobState=FAILED ü',  # its grammar parts mounts by colons
    "apptainer": "o'dd $(date) `x` a=1 JobState=FAILED ü",  # and by commas, as CSV
}


@pytest.mark.parametrize("runtime", PLACES)
def test_directories_and_variables_arrive_as_they_were_written(user: Login, runtime: str) -> None:
    texts = {name: json.dumps(value, ensure_ascii=False) for name, value in VALUES.items()}
    settings = [word for name, text in texts.items() for word in ("--set", f"env.{name}={text}")]
    outputs = user.directory / PLACES[runtime]
    odd_locale = 'it\'s "odd" $(date) `x`\nand long'
    if runtime == "enroot":  # which hands variables on in lines
        odd_locale = odd_locale.replace("\n", " ")
    variants = f"""a={UCX} b={UCX},GB_OF_VARIANT=it's-"q"$(date)`x`;*"""
    user.run(
        *("plan", "--site", "local-slurm", *user.shape(), "--runtime", runtime, "--images"),
        *("--out", outputs / "c", "--variants", variants, *settings),
        pyxis=True,
    )
    (campaign,) = outputs.iterdir()
    user.run("submit", campaign, env={"TZ": odd_locale}, pyxis=True)
    said = user.run("status", "--watch", campaign)
    assert said.endswith("2 ok of 2 runs\n")
    (run,) = (name for name, record in records(campaign).items() if record["variant"] == "b")
    (node,) = read_provenance(campaign / "runs" / run)["nodes"]
    seen = node["environment"]
    assert {name: seen.get(name) for name in VALUES} == VALUES
    assert (seen["GB_OF_VARIANT"], seen["TZ"]) == ('it\'s-"q"$(date)`x`;*', odd_locale)
    (number,) = job_ids(campaign).values()
    assert (campaign / "jobs" / "j001-n1" / f"end-{number}").read_text() == "0\n"
