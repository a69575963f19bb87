"""From the engine's stream to lines and to the one line of a failure."""

from gpubench.images.docker.engine import Layers
from gpubench.images.docker.lines import BuildLines, step_of

FAILED = "The command '/bin/sh -c make' returned a non-zero code: 2"


def lines_of(*pieces: str) -> tuple[BuildLines, list[str]]:
    seen: list[str] = []
    lines = BuildLines(seen.append)
    for piece in pieces:
        lines.feed(piece)
    return lines, seen


def test_pieces_become_whole_lines_without_colours() -> None:
    lines, seen = lines_of("Step 1/2 : FROM x", "\n", "\x1b[91mwar", "ning\n\x1b[0m", "50 %\r60 %\r\n", "rest")
    assert seen == ["Step 1/2 : FROM x", "warning", "50 %", "60 %"]
    lines.end()
    assert seen[-1] == "rest"


def test_a_failure_names_the_step_the_last_line_and_the_code() -> None:
    lines, _ = lines_of("Step 4/9 : RUN make\n", " ---> Running in 0c5a\n", "cc a.c\n", "undefined reference to x\n")
    lines.feed("Removing intermediate container 0c5a\n")
    assert str(lines.failure(FAILED)) == "build step 4/9 (RUN make) failed: undefined reference to x: exit code 2"


def test_the_output_of_an_earlier_step_explains_nothing() -> None:
    lines, _ = lines_of("Step 1/2 : RUN a\n", "said by a\n", "Step 2/2 : RUN make\n")
    assert "said by a" not in str(lines.failure(FAILED))
    assert "non-zero code: 2" in str(lines.failure(FAILED))


def test_a_full_disk_is_told_wherever_it_was_met() -> None:
    lines, _ = lines_of("Step 1/1 : RUN cp a b\n", "cp: error writing 'b': No space left on device\n")
    assert str(lines.failure(FAILED)).startswith("the disk of Docker is full: could not run build step 1/1")
    assert "disk of Docker is full" in str(lines_of()[0].failure("write /x: no space left on device"))


def test_a_dockerfile_that_cannot_be_read_has_no_step() -> None:
    failure = lines_of()[0].failure("dockerfile parse error line 1: unknown instruction: FRUM")
    assert str(failure) == "read the Dockerfile failed: dockerfile parse error line 1: unknown instruction: FRUM"


def test_steps_are_counted() -> None:
    step = step_of("Step 3/12 : RUN make -j")
    assert step is not None
    assert str(step) == "step 3/12 RUN make -j"
    assert step_of("Stepping 3/12 : x") is None


def test_a_push_adds_its_layers_up() -> None:
    layers = Layers()
    assert layers.note({"status": "The push refers to repository [x]"}) is None
    layers.note({"id": "a", "status": "Preparing"})
    layers.note({"id": "b", "status": "Layer already exists"})
    progress = layers.note({"id": "a", "status": "Pushing", "progressDetail": {"current": 50, "total": 200}})
    assert progress is not None
    assert (progress.text, progress.share) == ("pushing, 1 of 2 layers done", 0.25)
    progress = layers.note({"id": "a", "status": "Pushing", "progressDetail": {"current": 300, "total": 200}})
    assert progress is not None
    assert progress.share == 1.0
    progress = layers.note({"id": "a", "status": "Retrying in 5 seconds"})
    assert progress is not None
    assert progress.text.endswith("the registry failed, trying again")
