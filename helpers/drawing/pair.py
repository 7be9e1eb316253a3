"""Two runs side by side on the same axes, in one figure that fits a screen of 1024 x 768.

Memory stands above throughput, so that heights are compared across. The words are few: who holds
the budget and what was guessed stand at their lines.
"""

from matplotlib.figure import Figure

from helpers.drawing import figure_style as style
from helpers.drawing.layout import PAIR_HEIGHT, WIDTH, pair_axes, panel_title, write_title
from helpers.drawing.legend import name_kinds_below
from helpers.drawing.marks import guessed_bytes, guessed_rate
from helpers.drawing.memory_panel import fill_memory, memory_title, memory_top, thin_lines
from helpers.drawing.pictures import guess_words, in_time, warm_words
from helpers.drawing.series import memory_curves, thin, throughput_curves
from helpers.drawing.throughput_panel import fill_rate, rate_title, rate_top
from helpers.records import Outcome, Run


@style.styled
def draw_pair(runs: tuple[Run, Run]) -> Figure:
    """Draw two runs side by side. Panels of a kind share their limits."""
    figure = style.new_figure(WIDTH, PAIR_HEIGHT)
    end = max(run.seconds for run in runs)
    memory, rate = max(map(_memory_top, runs)), max(map(_rate_top, runs))
    lines: dict[str, None] = {}
    for column, run in enumerate(runs):
        above, below = pair_axes(figure, column)
        lines |= dict.fromkeys(thin_lines(fill_memory(above, run, memory, end)))
        panel_title(above, memory_title(run), 6)
        fill_rate(below, run, rate, end)
        waiting = f", {run.waiting_share:.0%} waiting" if run.counters.samples else ""
        panel_title(below, rate_title(run) + waiting, 6)
        above.tick_params(labelbottom=False, labelleft=column == 0)
        below.tick_params(labelleft=column == 0)
        left = column * 0.54 + 0.012
        write_title(figure, run.title, _subtitle(run), left, left + 0.44 + 0.02 * (1 - column))
    holders = {run.enforced_by.split()[0] for run in runs}
    name_kinds_below(figure, list(lines), holders.pop() if len(holders) == 1 else "", 0.12)
    return figure


def _memory_top(run: Run) -> float:
    curves = memory_curves(thin(run.snapshots))
    return memory_top(curves, run.budget_bytes, guessed_bytes(run.guess))


def _rate_top(run: Run) -> float:
    return rate_top(throughput_curves(thin(run.snapshots)), guessed_rate(run.guess))


def _subtitle(run: Run) -> str:
    """Return how a run ended, why it was warm, and a guess that has no line of its own."""
    drawn = guessed_bytes(run.guess) is not None or guessed_rate(run.guess) is not None
    error = "" if run.outcome is Outcome.KILLED else run.error
    ending = f"{run.outcome} after {in_time(run.seconds)}"
    guess = "" if drawn else guess_words(run)
    return " | ".join(filter(None, [ending, warm_words(run), guess, error]))
