"""What dead writers and dead runs left goes; everything else stays."""

import fcntl
from pathlib import Path

from gpubench.store.rundirs import remove_leftovers


def test_temporary_files_and_meeting_points_go_and_what_is_in_use_or_is_no_such_file_stays(tmp_path: Path) -> None:
    gone = [
        *("runs/.rendezvous-be900c940b2c-6af0", ".report.html.0a1b2c3d.tmp", "plan.d/.001.json.0a1b2c3d.tmp"),
        *("runs/be900c940b2c-1/.run.json.x1y2z3_8", "jobs/j001-n1/specs/.001-0-be900c940b2c.json.0a1b2c3d.tmp"),
    ]
    used = ".verdicts.json.0a1b2c3d.tmp"
    kept = ["plan.json", "runs/be900c940b2c-1/run.json", ".hidden", used]
    for name in (*gone, *kept):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    with (tmp_path / used).open() as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        remove_leftovers(tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == sorted(kept)
