"""The page about Python: its example runs a real campaign, and every name in its table exists."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.campaigns import campaign_in, write_suite
from tests.conftest import ROOT, own_queue, plain_environment

PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
OPTIONS = re.compile(r"CampaignOptions\(.+\)")


@pytest.mark.system
@pytest.mark.integration
def test_the_example_plans_runs_and_judges_a_campaign(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len([line for line in example.splitlines() if line]) <= 10
    small = f"CampaignOptions(variants='a=1.22.0 b=1.22.0', suite={str(write_suite(tmp_path))!r}, blocks='2', "
    small += "protocol='tcp', workers='1')"
    source, count = OPTIONS.subn(lambda _: small, example)
    assert count == 1
    done = subprocess.run(
        [sys.executable, "-c", source],
        cwd=tmp_path,
        env=plain_environment({**own_queue(tmp_path), "PYTHONPATH": str(ROOT)}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"tasks \w+ -?[\d.e-]+ \(-?[\d.e-]+, [\d.e-]+\)\n", done.stdout), done.stdout
    directory = campaign_in(tmp_path)
    assert {"plan.json", "results.parquet", "verdicts.json"} <= {path.name for path in directory.iterdir()}


@pytest.mark.parametrize("call", re.findall(r"\| `([\w.]+)\(", PAGE))
def test_names_of_the_table_exist(call: str) -> None:
    dotted = call if call.startswith("gpubench.") else f"gpubench.campaign.{call}"
    assert callable(pkgutil.resolve_name(dotted))
