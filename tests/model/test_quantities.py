import contextlib

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.errors import UsageError
from gpubench.model.base import Settings
from gpubench.model.quantities import (
    Bytes,
    Fraction,
    MemoryPool,
    Seconds,
    format_bytes,
    format_seconds,
    parse_bytes,
    parse_fraction,
    parse_seconds,
)


class Quantities(Settings):
    size: Bytes = 1
    time: Seconds = 1.0
    share: Fraction = 0.5


SIZES = {"1B": 1, "1KiB": 1024, "1KB": 1000, "1kB": 1000, "2GiB": 2 * 1024**3, "2GB": 2 * 1000**3}
SIZES |= {"1.5 MiB": 1572864, " 3TB ": 3 * 1000**4, "1PiB": 1024**5}
DURATIONS = {"90s": 90, "10m": 600, "10min": 600, "1h30m": 5400, "1h 30m": 5400, "250ms": 0.25, "2d": 172800}
PERCENTAGES = {"3%": 0.03, " 0.5 % ": 0.005, "100%": 1.0}


@pytest.mark.parametrize(("text", "count"), SIZES.items())
def test_a_size_is_bytes_and_decimal_and_binary_prefixes_differ(text: str, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize(
    ("parse", "text", "number"),
    [
        *((parse_seconds, *one) for one in DURATIONS.items()),
        *((parse_fraction, *one) for one in PERCENTAGES.items()),
    ],
)
def test_a_duration_is_seconds_and_a_percentage_a_fraction(parse, text: str, number: float) -> None:
    assert parse(text) == pytest.approx(number)


@pytest.mark.parametrize(
    ("parse", "said", "texts"),
    [
        (
            parse_bytes,
            "is not a size; write a number and a unit, like 512MiB",
            ["", " ", "5", "GiB", "5 apples", "5gib", "-5GiB", "1e3MB", "5GiB more", "1 2GiB"],
        ),
        (
            parse_seconds,
            "is not a duration; write a number and a unit, like 90s",
            ["", " ", "5", "m", "5x", "1h30", "-5s", "10m!", "s10"],
        ),
        (parse_fraction, "is not a percentage; write it like 3%", ["", "3", "0.03", "3 percent", "-3%"]),
    ],
)
def test_what_is_no_quantity_is_refused_with_an_example(parse, said: str, texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(ValueError, match=said):
            parse(text)


@pytest.mark.parametrize(("parse", "unit"), [(parse_bytes, "GB"), (parse_seconds, "h"), (parse_fraction, "%")])
def test_a_number_that_overflows_is_refused_and_no_crash(parse, unit: str) -> None:
    with pytest.raises(ValueError, match="' is more than "):
        parse("9" * 400 + unit)


@pytest.mark.parametrize("value", ["5", "5.0", "true", "[]", "inf"])
@pytest.mark.parametrize("key", ["size", "time", "share"])
def test_a_bare_number_in_a_profile_is_refused_by_key(key: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"^f.toml: '{key}' = .*a quantity needs its unit, as a string$"):
        Quantities.load(f"{key} = {value}", "f.toml")


def test_plain_numbers_are_read_only_from_records() -> None:
    plain = {"size": 5, "time": 2.5, "share": 0.1}
    assert Quantities.model_validate(plain, context={"plain": True}).model_dump() == plain
    with pytest.raises(pydantic.ValidationError):
        Quantities.model_validate(plain)
    with pytest.raises(pydantic.ValidationError):
        Quantities.model_validate({"size": True}, context={"plain": True})


@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59))
def test_what_is_printed_as_a_duration_reads_back(hours: int, minutes: int, seconds: int) -> None:
    total = float(hours * 3600 + minutes * 60 + seconds)
    grain = 60 if total >= 3600 else 1  # beyond an hour the seconds are not shown
    assert parse_seconds(format_seconds(total)) == total // grain * grain


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_a_value_error(text: str) -> None:
    for parse in (parse_bytes, parse_seconds, parse_fraction):
        with contextlib.suppress(ValueError):
            assert parse(text) >= 0


@pytest.mark.parametrize(
    ("form", "number", "words"),
    [
        *((format_seconds, *one) for one in [(5400, "1h30m"), (75.4, "1m15s"), (3.21, "3.2s"), (0, "0.0s")]),
        *((format_seconds, *one) for one in [(59.7, "1m00s"), (12, "12s"), (float("inf"), "unlimited")]),
        *((format_bytes, *one) for one in [(0, "0 B"), (1023, "1023 B"), (2 * 1024**3, "2.0 GiB")]),
        (format_bytes, 1024**5, "1024.0 TiB"),
    ],
)
def test_quantities_for_people(form, number: float, words: str) -> None:
    assert form(number) == words


class Pools(Settings):
    pool: MemoryPool = "default"


def test_a_memory_pool_is_a_size_or_one_of_two_words() -> None:
    assert [Pools(pool=word).pool for word in ("none", "default", "2GiB")] == ["none", "default", 2 * 2**30]
    assert Pools.model_validate({"pool": 1024}, context={"plain": True}).pool == 1024
    for wrong in ("some", 1024, True):
        with pytest.raises(pydantic.ValidationError, match=r"is not a size|needs its unit"):
            Pools(pool=wrong)
