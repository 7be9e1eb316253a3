"""What must be done whole is done whole, and the interrupt is not lost."""

import signal
import threading
from collections.abc import Iterator

import pytest

from helpers.running.interrupts import interrupts_held


@pytest.fixture(autouse=True)
def the_handler_is_as_before() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_waits_for_the_end_of_the_outermost_block() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt), interrupts_held():  # noqa: PT012 - where it comes
        with interrupts_held():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            done.append("the block")
        done.append("the outer block")
    assert done == ["the block", "the outer block"]


def test_an_error_inside_passes() -> None:
    with pytest.raises(ZeroDivisionError), interrupts_held():  # noqa: PT012 - both are one
        signal.raise_signal(signal.SIGINT)
        raise ZeroDivisionError


def test_another_thread_is_never_interrupted_and_holds_nothing() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        with interrupts_held():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
