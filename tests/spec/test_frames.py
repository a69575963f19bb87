"""A run's files over a log: whole, or said to be torn."""

import random

import pytest

from gpubench.node.spec.log_transport import FILES, MARK, MOST_BYTES, PART_BYTES, decode, encode

NOISE = random.Random(1).randbytes(5 * PART_BYTES)
RUN = {"run.json": b'{"status": "ok"}\n', "samples.jsonl": "ü\n".encode() * 2000, "logs.zip": NOISE}
LINES = list(encode("ab12-1", RUN))


def torn(lines: list[str]) -> str:
    found, _ = decode(lines)
    assert not found["ab12-1"].files
    return found["ab12-1"].torn


def test_files_come_back_as_they_were_among_other_lines_in_any_order_and_twice() -> None:
    other = list(encode("cd34-2", {"run.json": b"{}"}))
    mixed = ["hello", *LINES[::-1], "", f"{MARK} no frame", *other, *LINES]
    found, others = decode(mixed)
    assert {name: one.files for name, one in found.items()} == {"ab12-1": RUN, "cd34-2": {"run.json": b"{}"}}
    assert others == ["hello", "", f"{MARK} no frame"]
    assert list(found["ab12-1"].files)[-1] == FILES[-1] == "run.json"  # the record is to be written last


def test_no_line_is_longer_than_what_container_engines_keep_whole() -> None:
    assert len(LINES) > 5
    assert max(map(len, LINES)) < 16 * 1024


@pytest.mark.parametrize("lost", range(len(LINES)))
def test_any_line_that_is_missing_is_missed(lost: int) -> None:
    said = torn([*LINES[:lost], *LINES[lost + 1 :]])
    assert said == (
        "its end is missing" if lost == len(LINES) - 1 else f"line {lost + 1} of {len(LINES) - 1} is missing"
    )


@pytest.mark.parametrize("where", ["hash", "first letter", "last letter", "cut"])
def test_any_line_that_was_changed_is_found(where: str) -> None:
    *head, digest, text = LINES[1].split(" ")
    if where == "cut":
        text = text[: len(text) // 2]
    elif where == "hash":
        digest = digest[::-1]
    else:
        at = 0 if where == "first letter" else len(text) - 1
        text = text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]
    said = torn([LINES[0], " ".join([*head, digest, text]), *LINES[2:]])
    assert said == f"line 2 of {len(LINES) - 1} was changed on its way"


def test_lines_of_two_attempts_under_one_name_do_not_make_a_third() -> None:
    other = list(encode("ab12-1", {**RUN, "logs.zip": NOISE[::-1]}))
    assert len(other) == len(LINES)
    assert torn([*LINES[:3], *other[3:]]) == "its lines don't belong together"


def test_a_run_that_no_log_would_hold_comes_without_its_logs() -> None:
    big = random.Random(2).randbytes(MOST_BYTES + 1)
    found, _ = decode(encode("ab12-1", {**RUN, "logs.zip": big}))
    assert set(found["ab12-1"].files) == {"run.json", "samples.jsonl"}
