"""A claim is said, refused, or not asked."""

import pytest

from helpers.evidence import shown


def test_a_claim_that_holds_is_said_with_its_figure(capsys: pytest.CaptureFixture[str]) -> None:
    shown("blocks are faster", True, "12 times")
    assert capsys.readouterr().out == "✓ blocks are faster: 12 times\n"


@pytest.mark.parametrize("holds", [False, None, 0])
def test_a_claim_that_does_not_hold_is_an_error(holds: object) -> None:
    with pytest.raises(AssertionError, match="not shown: blocks are faster: 0"):
        shown("blocks are faster", holds, "0.9 times")


def test_what_cannot_be_shown_here_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    shown("blocks are faster", False, "0.9 times", unless="the file stayed warm")
    said = "- not shown on this machine: blocks are faster (the file stayed warm)\n"
    assert capsys.readouterr().out == said
