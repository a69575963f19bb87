"""What a shell has exported by names of ours doesn't reach the jobs that gpubench itself hands over."""

from gpubench.schedulers.batch import inherited

SHELL = {"PATH": "/bin", "GPUBENCH_BLOCKS": "7", "GPUBENCH_RANK": "5", "GPUBENCH_OUTDIR": "/else", "OUTDIR": "/else"}


def test_names_of_ours_are_for_who_starts_a_script_by_hand() -> None:
    assert inherited(SHELL) == {"PATH": "/bin", "OUTDIR": "/else"}
    assert inherited(SHELL, [1, 3]) == {"PATH": "/bin", "OUTDIR": "/else", "GPUBENCH_BLOCKS": "1 3"}
    assert inherited({}, []) == {"GPUBENCH_BLOCKS": ""}
