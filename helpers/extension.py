"""`%load_ext helpers`: what the notebooks ask of IPython, in one line that the reader can see."""

from typing import Any

from helpers.importable import register
from helpers.live import mimebundle
from helpers.records import Run
from helpers.running.warm_pool import pool


def load_ipython_extension(shell: Any) -> None:
    """Register %%importable, show runs as figures, and start the first child's warm-up."""
    from IPython.core import page

    register(shell)
    shell.display_formatter.mimebundle_formatter.for_type(Run, mimebundle)
    # What %mprun sends to a pager belongs below its cell, where it is saved and printed.
    shell.set_hook("show_in_pager", page.as_hook(page.display_page), 90)
    pool.warm_up()
