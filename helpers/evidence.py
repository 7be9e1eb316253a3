"""What a lesson has shown: one line for each claim, or an error where it does not hold.

>>> shown("a view is written through", viewed.outcome == "crashed", viewed.ending)
✓ a view is written through: crashed: SIGSEGV
"""

import sys


def shown(claim: str, holds: object, measured: object = "", *, unless: str = "") -> None:
    """Say that a claim holds, with what was measured. Raises AssertionError where it does not.

    `unless` is why this machine cannot show it, or "": then nothing is asked of `holds`.
    """
    if unless:
        line = f"- not shown on this machine: {claim} ({unless})"
    elif holds:
        line = f"✓ {claim}: {measured}"
    else:
        raise AssertionError(f"not shown: {claim}: {measured}")
    sys.stdout.write(f"{line}\n")
