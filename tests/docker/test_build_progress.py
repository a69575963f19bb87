"""What the user sees of builds."""

import io

import pytest
import rich.console
import rich.progress

from gpubench.cli.build_display import Bars, build_display


def test_without_a_terminal_each_step_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with build_display(["v1.14.x"]) as show:
        show.step("v1.14.x", "step 1/2 FROM x", 0.0)
        for share in (0.1, 0.5, 0.9):
            show.step("v1.14.x", "pushing, 0 of 1 layers done", share)
        show.done("v1.14.x")
        show.fail("v1.13.x", "image v1.13.x: build step 2/2 failed")
    assert capsys.readouterr().out.splitlines() == [
        "v1.14.x: step 1/2 FROM x",
        "v1.14.x: pushing, 0 of 1 layers done",
        "v1.14.x: done",
        "v1.13.x: failed: image v1.13.x: build step 2/2 failed",
    ]


def test_bars_show_words_as_they_are_and_the_whole_failure() -> None:
    out = io.StringIO()
    console = rich.console.Console(file=out, force_terminal=True, width=60, color_system=None)
    columns = (rich.progress.TextColumn("{task.description}"), rich.progress.TextColumn("{task.fields[text]}"))
    failure = f"image b: build step 2/2 failed: {'x' * 80} [log]"
    with rich.progress.Progress(*columns, console=console) as progress:
        bars = Bars(progress, ["a", "b"])
        bars.step("a", "step 1/2 RUN [ -e /x ]", 0.5)
        progress.refresh()
        bars.fail("b", failure)
        bars.done("a")
        assert [task.completed for task in progress.tasks] == [1.0, 0]
    assert f"b: failed: {failure}" in out.getvalue()
    assert "RUN [ -e /x ]" in out.getvalue()
