"""Words from outside (titles, errors, file names) as an output can show them, and how to say them.

Whatever an experiment writes may come here: megabytes of it, codes for a terminal, names that are
not text. Every function cuts first, so that none of it costs anything.
"""

import re
from contextlib import suppress
from functools import cache
from math import isfinite
from typing import TextIO

MOST = 1000  # characters: more than any output shows, and nothing to measure or to keep

_TERMINAL_CODE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|.)?")


def one_line(words: str, most: int = MOST) -> str:
    r"""Return words as one line that every front end can show: 'a\n\x1b[1mb\udcff' -> 'a b\\udcff'.

    Line ends and what else cannot be seen become a space, half characters (from the name of a file
    that is not text) are spelled out, and what is longer than `most` characters is cut.
    """
    begun = _TERMINAL_CODE.sub("", words[: 2 * most])
    begun = begun.encode("utf-8", "backslashreplace").decode()
    seen = "".join(letter if letter.isprintable() else " " for letter in begun)
    line = " ".join(seen.split())
    return line if len(line) <= most and len(words) <= 2 * most else f"{line[: most - 1]}\u2026"


def ratio_words(ratio: float) -> str:
    """Return a ratio with three digits, or all before the point: 1.24, 384, 4,096; '?' for nan."""
    if not isfinite(ratio):
        return "?"
    return f"{ratio:,.3g}" if ratio < 1000 else f"{ratio:,.0f}"


def drawable(words: str, most: int = 300) -> str:
    """Return words as one line in which a figure's font has every character, else U+FFFD."""
    known = _known_letters()
    return "".join(letter if ord(letter) in known else "\ufffd" for letter in one_line(words, most))


@cache
def _known_letters() -> frozenset[int]:
    """Return what DejaVu Sans, which matplotlib brings with it, has in both of its weights."""
    from matplotlib.font_manager import FontProperties, findfont, get_font  # takes a second

    plain, bold = (
        get_font(findfont(FontProperties(family=["DejaVu Sans"], weight=weight))).get_charmap()
        for weight in ("normal", "bold")
    )
    return frozenset(plain) & frozenset(bold)


def say(words: str, stream: TextIO | None) -> None:
    """Write words to a stream that may be missing, closed, full or poor in letters."""
    if stream is None:
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    with suppress(OSError, ValueError):  # ValueError: it is closed
        stream.write(words.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
