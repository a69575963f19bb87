"""A variant may be slowed by a known share, and by nothing but its own setting."""

import pytest

from gpubench.node.spec.slowness import slowness


@pytest.mark.parametrize(("settings", "share"), [({}, 0), ({"GPUBENCH_SLOW": "5%"}, 0.05), ({"UCX_TLS": "tcp"}, 0)])
def test_the_share_is_read_from_the_variants_settings(settings, share, monkeypatch):
    monkeypatch.setenv("GPUBENCH_SLOW", "50%")
    assert slowness(settings) == pytest.approx(share)


@pytest.mark.parametrize("text", ["5", "x%", "-1%", "nan%", "2000%", ""])
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="GPUBENCH_SLOW"):
        slowness({"GPUBENCH_SLOW": text})
