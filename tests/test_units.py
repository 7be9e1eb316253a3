"""Bytes and rates as people read and write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.units import format_bytes, format_rate, parse_size


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (150 * 2**20, "150 MiB"),
        (2**30, "1 GiB"),
        (5 * 2**50, "5120 TiB"),
        (-1536, "-1.5 KiB"),
        (2**20 - 1, "1 MiB"),  # and not 1024 KiB
        (99.96 * 2**20, "100 MiB"),
    ],
)
def test_sizes_read_as_people_write_them(size: float, words: str) -> None:
    assert format_bytes(size) == words


def test_rates_have_a_separator_and_a_digit_more_when_they_are_small() -> None:
    assert format_rate(12345.6) == "12,346 samples/s"
    assert format_rate(3.14159) == "3.1 samples/s"
    assert format_rate(0) == "0.0 samples/s"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1.5 GiB", 3 * 2**29),
        ("512MiB", 2**29),
        ("4 GB", 2**32),
        ("4g", 2**32),
        (" 7 ", 7),
        (".5 kib", 512),
        (1048576, 2**20),
        (2**63 + 1, 2**63 + 1),
        ("9" * 400, int("9" * 400)),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str | int, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    ["", "GiB", "-1", "0", 0, -5, "0.4", "1e9", "nan", "1 XB", "1 iB", "1 GiB 2", True, "½"],
)
def test_what_is_not_a_size_is_refused_by_name(text: str | int) -> None:
    with pytest.raises(ValueError, match="is not a size: write it as") as caught:
        parse_size(text)
    assert repr(text) in str(caught.value)


@given(st.integers(min_value=1, max_value=1023 * 2**40))
def test_a_size_survives_being_written_and_read_to_three_digits(size: int) -> None:
    assert abs(parse_size(format_bytes(size)) / size - 1) < 0.05
