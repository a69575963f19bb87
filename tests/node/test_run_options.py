"""`gpubench run`: what may be told to which role, and how it becomes Dask's own options."""

import argparse
import shlex
import tempfile
import threading
from pathlib import Path

import pytest

from gpubench.node import by_hand, dask_processes, role_options
from gpubench.node.main import _parser, main
from gpubench.node.writer.atomic import write_atomic
from tests.node.specs_by_hand import run_spec, write_campaign

QUIET = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")


def options(*words: str) -> argparse.Namespace:
    parsed = _parser().parse_args(["run", *words])
    role_options.check(parsed)
    return parsed


def refusal(*words: str) -> str:
    with pytest.raises(role_options.CombinationError) as caught:
        options(*words)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_scheduler_by_hand_listens_on_the_named_interface_only() -> None:
    assert by_hand.scheduler_arguments(options("--role", "scheduler", "--interface", "lo")) == [
        *("--interface", "lo", "--port", "0", *QUIET, "--no-show")
    ]
    words = ("--role", "scheduler", "--interface", "lo", "--protocol", "ucxx", "--scheduler-file", "/s/s.json")
    assert by_hand.scheduler_arguments(options(*words)) == [
        *("--protocol", "ucxx", "--interface", "lo", "--scheduler-file", "/s/s.json"),
        *("--port", "0", *QUIET, "--no-show"),
    ]


def test_a_worker_by_hand_takes_dasks_own_options() -> None:
    few = options("--role", "worker", "--interface", "lo", "--address", "tcp://127.0.0.1:8786")
    assert by_hand.worker_arguments(few) == ["tcp://127.0.0.1:8786", "--interface", "lo", *QUIET]
    all_words = (
        *("--role", "worker", "--interface", "lo", "--scheduler-file", "/s/s.json", "--protocol", "ucxx"),
        *("--nthreads", "4", "--memory-limit", "8GiB", "--local-directory", "/scratch", "--death-timeout", "60"),
        *("--name", "w7", "--device", "gpu"),
    )
    assert by_hand.worker_arguments(options(*all_words)) == [
        *("--protocol", "ucxx", "--interface", "lo", "--scheduler-file", "/s/s.json", "--name", "w7"),
        *("--nthreads", "4", "--memory-limit", "8GiB", "--local-directory", "/scratch", "--death-timeout", "60"),
        *QUIET,
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "role auto needs --spec FILE; without one: --role scheduler or worker"),
        ("--role client", "role client needs --spec FILE; without one: --role scheduler or worker"),
        ("--role scheduler", "role scheduler without --spec needs --interface"),
        (
            "--role scheduler --interface lo --nthreads 2 --memory-limit 1GiB",
            "role scheduler without --spec takes no --nthreads, --memory-limit "
            "(it takes --interface, --protocol, --scheduler-file, --local-directory)",
        ),
        (
            "--role worker --interface lo",
            "role worker without --spec needs --address or --scheduler-file, and not both",
        ),
        (
            "--role worker --interface lo --address tcp://a:1 --scheduler-file s",
            "role worker without --spec needs --address or --scheduler-file, and not both",
        ),
        ("--role worker --interface lo --address a --rank 1", "role worker without --spec takes no --rank (it takes "),
        (
            "--spec s --interface lo",
            "role auto with --spec takes no --interface (it takes --rank, --skip, --device, --protocol)",
        ),
        ("--spec s --role scheduler --address a", "role scheduler with --spec takes no --address (it takes "),
        ("--spec s --role worker", "role worker with --spec needs --address, --name"),
        (
            "--spec s --role worker --name w --address a --nthreads 2",
            "role worker with --spec takes no --nthreads (it takes --address, --name, ",
        ),
        ("--spec s --role client --address a", "role client with --spec needs --run-dir"),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_line(words: str, message: str) -> None:
    assert refusal(*words.split()).startswith(message)


def test_no_refusal_tells_of_what_only_the_supervisor_says() -> None:
    assert "--parent" not in refusal(
        *["--spec", "s", "--role", "worker", "--name", "w", "--address", "a", "--nthreads", "2"]
    )


def code_and_line(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str]:
    code = main(["run", *map(str, words)])
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith("gpubench run: ")
    return code, said.err


def test_wrong_words_end_with_2_and_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert code_and_line(capsys, "--role", "client")[0] == 2
    (tmp_path / "spec.json").write_text("{}")
    code, line = code_and_line(capsys, "--spec", tmp_path / "spec.json")
    assert (code, line) == (2, f"gpubench run: {tmp_path}/spec.json is not a gpubench/run-spec/1\n")


def test_a_spec_that_is_not_there_is_a_fault_of_the_node(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, line = code_and_line(capsys, "--spec", tmp_path / "missing.json")
    assert code == 40
    assert "missing.json" in line


def test_a_node_without_rank_or_token_does_not_guess(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GPUBENCH_JOB_TOKEN", "OUTDIR", "GPUBENCH_RANK", "SLURM_NODEID", "PMIX_RANK"):
        monkeypatch.delenv(name, raising=False)
    path = write_campaign(tmp_path, run_spec(nodes=2))
    code, line = code_and_line(capsys, "--spec", path)
    assert code == 2
    assert "a run on 2 nodes needs --rank" in line
    code, line = code_and_line(capsys, "--spec", path, "--rank", "1")
    assert code == 2
    assert "a run on 2 nodes needs GPUBENCH_JOB_TOKEN, the same on every node, new for every job" in line
    assert not (tmp_path / "runs").exists()


def test_a_spec_outside_of_a_campaign_needs_outdir(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OUTDIR", raising=False)
    with tempfile.NamedTemporaryFile("w", dir="/tmp", prefix="gpubench-test-spec-") as shallow:
        shallow.write(run_spec().dump())
        shallow.flush()
        code, line = code_and_line(capsys, "--spec", shallow.name, "--skip", "why")
    assert code == 2
    assert line == f"gpubench run: {shallow.name} is in no campaign; set OUTDIR to the campaign's directory\n"


def test_an_address_that_a_file_will_hold_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "address"
    assert dask_processes.address_in("tcp://127.0.0.1:1", 0.0) == "tcp://127.0.0.1:1"
    with pytest.raises(FileNotFoundError):
        dask_processes.address_in(f"@{file}", 0.0)
    late = threading.Timer(0.1, write_atomic, [file, b"tcp://127.0.0.1:2"])
    late.start()
    assert dask_processes.address_in(f"@{file}", 60.0) == "tcp://127.0.0.1:2"
    late.join()


def adopted(line: str, device: str = "cpu") -> tuple[list[str], list[str]]:
    """Words for Dask's command of a line with our command's name, and what is said about the line."""
    parsed, rest = _parser().parse_known_args(["run", *shlex.split(line)])
    words, lines = by_hand.adopt(parsed, rest, device)
    role_options.check(parsed)
    arguments = by_hand.scheduler_arguments if parsed.role == "scheduler" else by_hand.worker_arguments
    return arguments(parsed, words), lines


def test_summits_hand_written_lines_become_ours_by_the_commands_name_alone() -> None:
    """jsrun's words stand before them."""
    common = "--scheduler-file s.json --local-directory d --death-timeout 60 --interface lo"
    ours = ["--interface", "lo", "--scheduler-file", "s.json"]
    limits = ["--local-directory", "d", "--death-timeout", "60"]
    assert adopted(f"--role worker {common} --nthreads 42 --memory-limit 512GB --nanny") == (
        [*ours, "--nthreads", "42", "--memory-limit", "512GB", *limits, *QUIET, "--nanny"],
        [],
    )
    cuda = f"--role worker {common} --nthreads 1 --memory-limit 85GB --device-memory-limit 16GB --enable-infiniband"
    assert adopted(f"{cuda} --enable-nvlink", "gpu") == (
        [
            *(*ours, "--nthreads", "1", "--memory-limit", "85GB", *limits, *QUIET),
            *("--device-memory-limit", "16GB", "--enable-infiniband", "--enable-nvlink"),
        ],
        [],
    )
    assert adopted("--role scheduler --interface lo --scheduler-file s.json --port 4321 --local-directory d") == (
        [*ours, *QUIET, "--no-show", "--port", "4321"],
        ["--local-directory is left out: Dask's scheduler has it no more"],
    )


def test_dasks_http_server_is_on_the_loopback_whatever_the_interface_is() -> None:
    for role in ("worker", "scheduler"):
        words, _ = adopted(f"--role {role} --interface ib0 --scheduler-file s.json")
        assert words[words.index("--dashboard-address") + 1] == "127.0.0.1:0"


def test_retired_words_are_translated_or_left_out_with_one_line_each() -> None:
    words, lines = adopted(
        "--role worker --interface lo tcp://h:1 --nthreads 1 --nprocs 1 --no-dashboard --reconnect --bokeh-port=8787"
    )
    assert words == [
        *("tcp://h:1", "--interface", "lo", "--nthreads", "1", "--nworkers", "1"),
        *("--no-dashboard", "--dashboard-address", ":8787"),
    ]
    assert lines == [
        "--nprocs is retired: --nworkers 1",
        "--reconnect is left out: Dask has it no more",
        "--bokeh-port is retired: --dashboard-address :8787",
    ]


def test_words_of_the_other_kind_of_worker_are_left_out_with_the_reason() -> None:
    line = "--role worker --interface lo --address a --rmm-pool-size 10GB --enable-nvlink --no-nanny --nprocs 6"
    assert adopted(line, "cpu")[1] == [
        "--rmm-pool-size is left out: it is about GPUs, and this worker runs on the CPU",
        "--enable-nvlink is left out: it is about GPUs, and this worker runs on the CPU",
        "--nprocs is retired: --nworkers 6",
    ]
    assert adopted(line, "gpu")[1] == [
        "--no-nanny is left out: GPU workers have one process per GPU, under a nanny",
        "--nprocs is left out: GPU workers have one process per GPU, under a nanny",
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--role worker --interface lo --address a --nthread 2", "--nthread is no option of Dask's cpu worker"),
        ("--role scheduler --interface lo --nanny", "--nanny is no option of Dask's scheduler"),
        ("--role worker --interface lo --address a --resources", "--resources takes a value"),
        ("--role worker --interface lo --address a tcp://b:1", "role worker takes no tcp://b:1"),
        ("--role scheduler --interface lo tcp://b:1", "role scheduler takes no tcp://b:1"),
    ],
)
def test_words_that_dask_never_had_are_refused_in_one_line(line: str, message: str) -> None:
    with pytest.raises(role_options.CombinationError) as caught:
        adopted(line)
    assert str(caught.value) == message


def test_words_of_dask_are_refused_where_a_spec_says_what_to_start(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_and_line(capsys, "--spec", "s", "--nanny") == (2, "gpubench run: role auto takes no --nanny\n")


def test_every_word_that_is_handed_on_is_one_of_dasks_own() -> None:
    from distributed.cli import dask_scheduler, dask_worker

    for kind, command in (("scheduler", dask_scheduler.main), ("cpu", dask_worker.main)):
        known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
        assert set(by_hand.TAKEN[kind]) - known == set()
