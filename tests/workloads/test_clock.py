"""The clock of a job: what is set meanwhile on its machine moves nothing."""

import datetime as dt
import time
from pathlib import Path

import pytest

from gpubench.node.workloads import clock

BOOT = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def uptime() -> float:
    return float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])


@pytest.mark.parametrize("set_by_s", [-3600.0, 0.0, 3600.0])
def test_a_clock_that_is_set_while_the_job_runs_moves_nothing(monkeypatch: pytest.MonkeyPatch, set_by_s: float) -> None:
    began, real = 1_700_000_000.25, time.time
    monkeypatch.setenv(clock.VARIABLE, f"{BOOT} {uptime() - 100:.2f} {began}")
    monkeypatch.setattr(time, "time", lambda: real() + set_by_s)
    assert began + 100 <= clock.now() < began + 160
    assert dt.datetime.fromisoformat(clock.utc_now()).timestamp() == pytest.approx(began + 100, abs=60)


def test_moments_of_short_repetitions_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """``/proc/uptime`` counts hundredths of a second; a message takes less than a thousandth."""
    monkeypatch.setenv(clock.VARIABLE, f"{BOOT} {uptime() - 100:.2f} 1700000000.25")
    moments = []
    for _ in range(50):
        moments.append(clock.utc_now())
        time.sleep(0.0005)
    assert moments == sorted(set(moments))


@pytest.mark.parametrize("words", ["", "other 1.0 2.0", f"{BOOT} x 2.0", f"{BOOT} 1.0"])
def test_without_a_script_on_this_machine_its_own_clock_counts(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.setenv(clock.VARIABLE, words)
    assert abs(clock.now() - time.time()) < 60
