"""What reports say of the gate on their site, and the file that it is kept in."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpubench.report.inputs import calibration_sentence
from gpubench.store.calibrations import Calibration, calibration_file, keep_calibration, read_calibrations


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def measured(slow: str = "", **more: object) -> Calibration:
    facts: dict[str, object] = {
        "gpubench": "0.1",
        "measured_at": "2025-11-20T14:00:00+00:00",
        "suite": "calibrate",
        "ucx": "1.22.0",
        "blocks": 5,
        "slow": slow,
        "campaigns": 20,
        "alarms": 1,
        "equivalent": 14,
        "regressions": 1,
        "hosts": ["laptop"],
        "load": 1.25,
        "steal": None,
        "directory": "/o/calibration-local",
    }
    return Calibration(**{**facts, **more})  # type: ignore[arg-type]


def test_both_kinds_are_kept_and_said_in_one_sentence():
    assert read_calibrations("local") == {}
    keep_calibration("local", measured(campaigns=3))
    keep_calibration("local", measured("5%", regressions=18))
    keep_calibration("local", measured())
    keep_calibration("other", measured("9%"))
    found = read_calibrations("local")
    assert found == {"": measured(), "5%": measured("5%", regressions=18)}
    where = "(suite calibrate, 5 blocks, on laptop, mean load 1.2, 2025-11-20, gpubench 0.1)"
    assert calibration_sentence(found) == (
        "False alarms: 1 of 20 campaigns (5 %, 95 % interval 0.13 to 24.9 %) of a version against itself raised one, "
        f"14 were equivalent {where}; a candidate slowed by 5 % was found in 18 of 20 campaigns (90 %, 95 % interval "
        f"68 to 98.8 %) {where}."
    )


def test_what_was_not_measured_is_said_too():
    found = calibration_sentence({"5%": measured("5%")})
    assert found.startswith("False alarms: not calibrated on this site (gpubench calibrate")
    assert "; a candidate slowed by 5 % was found in 1 of 20 campaigns" in found


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema": "x"}', '{"schema": "gpubench/calibration/1"}'])
def test_a_damaged_file_is_as_none(text):
    keep_calibration("local", measured())
    calibration_file("local").write_text(text)
    assert "not calibrated" in calibration_sentence(read_calibrations("local"))
