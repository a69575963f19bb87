import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpubench.render.shell import command_line
from gpubench.runtimes import Expanded
from tests.render.test_scripts_say_what_was_written import NASTY

# Everything that a command line can carry: no NUL, and no lone surrogates, which have no bytes.
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
nasty = st.sampled_from(["", *NASTY])


@given(st.lists(texts | nasty, max_size=6))
@example(["'", '"', "$(exit 3)", "a\nb", "-e", "", "\\n"])
@settings(max_examples=300)
def test_bash_sees_exactly_the_words(listed: list[str]) -> None:
    line = f"printf '%s\\0' start {command_line(listed)}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=True, timeout=60)
    assert done.stderr == b""
    assert done.stdout.decode().split("\0")[1:-1] == listed


def test_a_word_that_no_command_line_can_carry_is_refused() -> None:
    with pytest.raises(ValueError, match=r"holds a NUL byte: 'a\\x00b'"):
        command_line(["fine", "a\0b"])


@given(texts | nasty)
@settings(max_examples=200)
def test_a_variable_is_put_in_and_nothing_else_is(value: str) -> None:
    line = command_line(["printf", "%s", Expanded('--volume=$PLACE:"$(id)" `id` \\ $5')])
    done = subprocess.run(["bash", "-c", line], env={"PLACE": value}, capture_output=True, timeout=60, check=True)
    assert done.stdout.decode() == f'--volume={value}:"$(id)" `id` \\ $5'
