"""From what buildx prints to steps, lines and the one line of a failure."""

from gpubench.images.docker.build import BuildLines, BuildStep
from gpubench.images.docker.engine import Layers

WRAPPING = (
    "rpc error: code = Unknown desc = failed to solve with frontend dockerfile.v0: failed to create LLB definition: "
)
DOCKERFILE = b"""FROM debian:12 AS shared
RUN apt-get update \\
    && apt-get install RUN
FROM shared
WORKDIR /x
  COPY a b
"""
FAILED = """\
#7 [shared  2/12] RUN make
#7 0.118 cc a.c
#7 0.119
#8 [final 1/2] RUN sleep 9
#8 0.120 said by another
#7 0.121 \x1b[91mundefined reference to x\x1b[0m
#8 CANCELED
#7 ERROR: process "/bin/sh -c make" did not complete successfully: exit code: 2
------
 > [shared  2/12] RUN make:
0.121 undefined reference to x
------
ERROR: failed to solve: process "/bin/sh -c make" did not complete successfully: exit code: 2
"""


def lines_of(text: str) -> tuple[BuildLines, list[str], list[tuple[BuildStep, float]]]:
    seen: list[str] = []
    steps: list[tuple[BuildStep, float]] = []
    lines = BuildLines(DOCKERFILE, seen.append, lambda step, share: steps.append((step, share)))
    for line in text.splitlines(keepends=True):
        lines.feed(line)
    return lines, seen, steps


def failure(text: str) -> str:
    return str(lines_of(text)[0].failure())


def test_lines_come_without_colours_and_line_ends() -> None:
    _, seen, _ = lines_of("#1 [internal] load\n\n#2 0.1 \x1b[91mwar\x1b[0mning \n")
    assert seen == ["#1 [internal] load", "#2 0.1 warning"]


def test_steps_are_counted_once_each_with_the_share_before_them() -> None:
    _, _, steps = lines_of(
        "#1 [internal] load build definition\n#4 [shared 1/2] FROM debian:12\n#4 CACHED\n#5 [shared 2/2] RUN apt-get\n"
        "#5 ...\n\n#6 [stage-1  1/2] WORKDIR /x\n#6 DONE 0.1s\n\n#5 [shared 2/2] RUN apt-get\n#5 DONE 0.1s\n"
    )
    assert [(str(step), share) for step, share in steps] == [
        ("step shared 1/2 FROM debian:12", 0.0),
        ("step shared 2/2 RUN apt-get", 0.25),
        ("step stage-1 1/2 WORKDIR /x", 0.5),
    ]
    assert str(BuildStep("", 2, 3, "RUN make -j")) == "step 2/3 RUN make -j"


def test_a_failure_names_the_step_its_last_line_and_the_code() -> None:
    assert failure(FAILED) == "build step shared 2/12 (RUN make) failed: undefined reference to x: exit code 2"
    older = FAILED.replace('process "/bin/sh -c make" did not complete successfully', "executor failed running [make]")
    assert failure(older) == failure(FAILED)


def test_the_output_of_another_step_explains_nothing() -> None:
    quiet = "".join(line for line in FAILED.splitlines(keepends=True) if not line.startswith("#7 0."))
    assert "said by another" not in failure(quiet)
    assert "exit code: 2" in failure(quiet)


def test_a_full_disk_is_told_wherever_it_was_met() -> None:
    said = failure(FAILED.replace("undefined reference to x", "cp: error writing 'b': No space left on device"))
    assert said.startswith("the disk of Docker is full: could not run build step shared 2/12 (RUN make)")
    said = failure(
        "#9 exporting to image\n#9 ERROR: write /x: no space left on device\nERROR: no space left on device\n"
    )
    assert said.startswith("the disk of Docker is full: could not run build step exporting to image (no space left")


def test_a_dockerfile_that_cannot_be_read_has_no_step() -> None:
    for wrapping in ("", WRAPPING):
        text = f"#2 copy /context /\n#2 DONE 0.1s\nERROR: failed to solve: {wrapping}dockerfile parse error on line 1\n"
        said = failure(text)
        assert said == "read the Dockerfile failed: dockerfile parse error on line 1"


def test_a_base_that_is_not_there_is_named() -> None:
    lines, _, _ = lines_of(
        "#3 [internal] load metadata for docker.io/library/x:1\n#3 ERROR: not found\n"
        "ERROR: failed to solve: x:1: not found\n"
    )
    assert lines.missing_base == "docker.io/library/x:1"
    assert str(lines.failure()) == ("build step load metadata for docker.io/library/x:1 failed: x:1: not found")


def test_a_build_that_says_nothing_is_one_line() -> None:
    assert failure("") == "read the Dockerfile failed: buildx ended without an image"


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
