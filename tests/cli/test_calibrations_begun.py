"""The directory of a calibration, before anything runs."""

from __future__ import annotations

import datetime as dt
import types
from pathlib import Path

import pytest

from gpubench.cli.campaign import calibrate
from gpubench.cli.campaign.options import CalibrateOptions


def test_two_that_begin_in_the_same_second_get_two_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moment = dt.datetime(2026, 11, 20, 14, tzinfo=dt.UTC)
    stopped = types.SimpleNamespace(datetime=types.SimpleNamespace(now=lambda _zone: moment), UTC=dt.UTC)
    monkeypatch.setattr(calibrate, "dt", stopped)
    begun = [calibrate.begin(CalibrateOptions(ucx="1.22.0"), tmp_path) for _ in range(2)]
    assert [path.name for path in begun] == [
        "calibration-local-20261120T140000Z",
        "calibration-local-20261120T140000Z-2",
    ]
    assert all((path / "calibration.json").is_file() for path in begun)


def test_a_percentage_may_be_written_as_gpubench_writes_it(tmp_path: Path) -> None:
    directory = calibrate.begin(CalibrateOptions(ucx="1.22.0", slow="5 %"), tmp_path)
    kept = calibrate._read(directory)
    assert kept.slow == "5%"
    assert kept.asked(0, directory).variants == "a=1.22.0 b=1.22.0,GPUBENCH_SLOW=5%"
