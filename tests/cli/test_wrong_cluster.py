"""A benchmark of the wrong library, over the wrong transport, or with another environment, is worse than none."""

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from gpubench.store.campaign import Campaign
from tests.cli.campaigns import records, words, write_suite
from tests.conftest import Run, plain_environment


def planned(
    gpubench: Run, tmp_path: Path, *more: str, protocol: str = "tcp", variants: str = "a=1.22.0 b=1.22.0"
) -> Path:
    """A campaign that is planned and rendered, and not run."""
    suite = write_suite(tmp_path, reps=1, count=10)
    arguments = words(suite, "--blocks", "1", *more, protocol=protocol, variants=variants)
    gpubench("plan", *arguments[1:], "--out", "outputs/planned", "--images", code=0)
    (campaign,) = (tmp_path / "outputs").iterdir()
    return campaign


def run_spec(
    campaign: Path,
    number: int = 0,
    *more: str,
    shell: dict[str, str] | None = None,
    changes: dict[str, Any] | None = None,
) -> tuple[int, dict[str, Any], str]:
    """Call the entrypoint as the job script does: exit code, record, standard error."""
    spec = sorted(campaign.glob("jobs/*/specs/*.json"))[number]
    plain = {**json.loads(spec.read_text()), **(changes or {})}
    spec.write_text(json.dumps(plain))
    variant = next(item for item in Campaign.open(campaign).plan.variants if item.label == plain["variant"])
    assert variant.image
    done = subprocess.run(
        [variant.image.python, "-I", str(campaign / "node.pyz"), "run", "--spec", str(spec), *more],
        env=plain_environment({"GPUBENCH_JOB_TOKEN": "by-hand", **(shell or {})}),
        cwd=campaign,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    found = [record for record in records(campaign).values() if record["run"] == plain["run"]]
    return done.returncode, found[-1] if found else {}, done.stderr


@pytest.mark.integration
def test_tcp_under_a_plan_for_ucx_fails_the_run(gpubench: Run, tmp_path: Path) -> None:
    campaign = planned(gpubench, tmp_path, protocol="ucx")
    code, record, _ = run_spec(campaign, 0, "--protocol", "tcp")
    assert code == 0
    assert record["status"] == "failed"
    assert "speaks tcp, planned ucxx" in record["reason"]


@pytest.mark.system
def test_a_library_of_another_version_fails_the_run(gpubench: Run, tmp_path: Path) -> None:
    campaign = planned(gpubench, tmp_path, protocol="ucx", variants="a=1.22.0 b=1.21.0")
    specs = [json.loads(path.read_text()) for path in sorted(campaign.glob("jobs/*/specs/*.json"))]
    code, record, _ = run_spec(campaign, changes={"env": specs[1]["env"]})
    assert code == 0
    assert record["status"] == "failed"
    found, expected = specs[1]["expect_ucx"], specs[0]["expect_ucx"]
    assert f"loaded UCX {found} from " in record["reason"]
    assert record["reason"].endswith(f"planned {expected}")
    (kept,) = campaign.glob("runs/*/logs.zip")
    with zipfile.ZipFile(kept) as logs:
        sizes = {one.filename: one.file_size for one in logs.infolist() if "ucx-" in one.filename}
    assert any(sizes.values()), sizes  # the client's, which ends by itself


@pytest.mark.system
def test_a_login_shell_full_of_settings_changes_nothing_and_is_named(gpubench: Run, tmp_path: Path) -> None:
    campaign = planned(gpubench, tmp_path)
    shell = {
        "UCX_TLS": "bogus",
        "DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING": "False",
        "LD_LIBRARY_PATH": "/nowhere",
        "PYTHONPATH": str(tmp_path),
    }
    (tmp_path / "distributed.py").write_text("raise SystemExit('the wrong distributed was imported')\n")
    code, record, errors = run_spec(campaign, shell=shell)
    assert (code, record["status"]) == (0, "ok"), (errors, record["reason"])
    said = " ".join(record["warnings"])
    assert all(name in said for name in shell)
