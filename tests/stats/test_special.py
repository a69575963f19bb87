"""The functions that the statistics take from scipy: they are scipy's own, and scipy is whole beside them."""

from __future__ import annotations

import subprocess
import sys

import pytest

OURS_FIRST = "import gpubench.stats.special as ours; import scipy.special as theirs"
THEIRS_FIRST = "import scipy.special as theirs; import gpubench.stats.special as ours"
SAME = """
import math, scipy.optimize, scipy.stats
assert theirs.__spec__.name == "scipy.special" and theirs.expit(0.0) == 0.5
assert scipy.stats.t.ppf(0.9, 3) == ours.stdtrit(3, 0.9) == theirs.stdtrit(3, 0.9)
assert scipy.stats.nct.cdf(1.0, 3, 0.5) == ours.nctdtr(3, 0.5, 1.0)
found = 0
for name, one in vars(ours).items():
    if hasattr(one, "ntypes"):
        given = [0.25, 0.5, 0.75][: one.nin]
        assert one(*given) == getattr(theirs, name)(*given), name
        found += 1
print(found)
"""


@pytest.mark.parametrize("order", [OURS_FIRST, THEIRS_FIRST])
def test_functions_are_those_of_scipy_which_can_be_imported_whole_before_and_after(order: str) -> None:
    done = subprocess.run([sys.executable, "-c", order + SAME], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 9
