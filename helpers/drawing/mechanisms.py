"""Small plain pictures of what happens below a loader, made from a lesson's own numbers.

Each takes sizes in bytes and returns a Picture of at most 1000 x 260 pixels. Raises ValueError for
a number that is not above zero.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from helpers.drawing import figure_style as style
from helpers.drawing import sketch
from helpers.drawing.memory_panel import Stack, frame_memory
from helpers.drawing.pictures import Picture
from helpers.drawing.series import memory_curves
from helpers.records import Snapshot
from helpers.units import format_bytes

_MOST_CELLS, _MOST_WORKERS = 32, 3  # drawn; there may be more


def draw_read_ahead(row_bytes: int, page_bytes: int, read_ahead_bytes: int) -> Picture:
    """Draw a file in pages, the row that is asked for, and the window that the kernel reads."""
    sketch.check_above_zero(
        row_bytes=row_bytes, page_bytes=page_bytes, read_ahead_bytes=read_ahead_bytes
    )
    window = -(-max(read_ahead_bytes, row_bytes) // page_bytes)  # whole pages are read
    each = -(-window // _MOST_CELLS)  # pages in a cell that is drawn
    read = window * page_bytes
    asked = f"the loop uses 1 row, {format_bytes(row_bytes)}"
    pages = "1 page" if window == 1 else f"{window:,} pages"
    was_read = f"the kernel reads {pages}, {format_bytes(read)}"
    times = read / row_bytes
    ratio = f"{times:,.3g} times what is used" if times > 1 else "all of it is used"
    figure, ax = sketch.new_sketch(230)
    sketch.heading(ax, "What is read for the rows in use")
    _draw_window(ax, -(-window // each), 1 / times, asked, f"{was_read}: {ratio}")
    cell = "One cell is one page" if each == 1 else f"One cell is {each:,} pages"
    sketch.write(ax, (20, 200), f"{cell} of {format_bytes(page_bytes)}.", fontsize=style.SMALL)
    alt = f"A file in pages of {format_bytes(page_bytes)}: {asked}; {was_read}: {ratio}."
    return Picture(figure, alt)


def _draw_window(ax: Axes, cells: int, share: float, asked: str, was_read: str) -> None:
    """Draw the strip: `cells` that are read between some that are not, and the part in use."""
    around, top, height = 4, 100, 50
    width = 960 / (cells + 2 * around)
    inside = range(around, around + cells)
    for cell in range(cells + 2 * around):
        look = sketch.PAGE_CACHE if cell in inside else sketch.PLAIN
        sketch.box(ax, (20 + cell * width, top), (width, height), look=look)
    wide = max(share * cells * width, 4)
    sketch.box(ax, (500 - wide / 2, top), (wide, height), look=sketch.ANONYMOUS)
    sketch.write(ax, (500, 48), asked, ha="center")
    sketch.arrow(ax, (500, 68), (500, top))
    sketch.span(ax, 500 - cells * width / 2, 500 + cells * width / 2, 162, was_read)


def draw_pickled_map(file_bytes: int, workers: int) -> Picture:
    """Draw workers that get a map of a file by value, beside workers that map the file again."""
    sketch.check_above_zero(file_bytes=file_bytes, workers=workers)
    size, all_copies = format_bytes(file_bytes), format_bytes(file_bytes * workers)
    count = f"{workers:,} workers" if workers > 1 else "1 worker"
    copied = f"{count}: {all_copies} of private copies"
    mapped = f"{count}, one page cache: {size}"
    figure, ax = sketch.new_sketch(260)
    sketch.heading(ax, "The map is sent: by value")
    sketch.heading(ax, "The path is sent: each maps the file", 540)
    copies, main = _places(workers, 20), (165, 50)
    sketch.box(ax, main, (150, 54), f"main: a map\nof {size}", sketch.PAGE_CACHE)
    for number, (x, wide) in enumerate(copies, 1):
        sketch.arrow(ax, (240, 104), (x + wide / 2, 142))
        name = f"worker {number}\na copy: {size}"
        sketch.box(ax, (x, 142), (wide, 60), name, sketch.ANONYMOUS)
    for number, (x, wide) in enumerate(_places(workers, 540), 1):
        sketch.box(ax, (x, 50), (wide, 54), f"worker {number}\na map")
        sketch.arrow(ax, (x + wide / 2, 104), (x + wide / 2, 142))
    sketch.box(ax, (540, 142), (440, 60), f"page cache: {size}, once", sketch.PAGE_CACHE)
    sketch.write(ax, (20, 220), copied, fontweight="bold")
    sketch.write(ax, (540, 220), mapped, fontweight="bold")
    alt = f"A map of a {size} file is sent to {copied}. The path is sent to {mapped}."
    return Picture(figure, alt)


def _places(workers: int, left: float) -> list[tuple[float, float]]:
    """Return where the boxes of workers start, and how wide each is, in 440 pixels."""
    drawn = min(workers, _MOST_WORKERS)
    wide = (440 - 12 * (drawn - 1)) / drawn
    return [(left + number * (wide + 12), wide) for number in range(drawn)]


def draw_double_charge(file_bytes: int, budget_bytes: int) -> Picture:
    """Draw what is charged while `np.load` fills an array: each byte twice, while there is room."""
    sketch.check_above_zero(file_bytes=file_bytes, budget_bytes=budget_bytes)
    array = min(file_bytes, budget_bytes)
    full = min(array, budget_bytes // 2)  # from here on the cache is given back
    steps = [
        Snapshot(read, read, min(read, budget_bytes - read), 0, 0, 1) for read in (0, full, array)
    ]
    figure, ax = sketch.new_sketch(260)
    _draw_charge(figure, steps, budget_bytes)
    sketch.heading(ax, "What np.load is charged for while it reads")
    ends = f"The array ends at {format_bytes(file_bytes)}: it fits."
    if file_bytes > budget_bytes:
        ends = "At the budget the array alone\nis too large: it is killed."
    turns = f"At {format_bytes(full)} read both are {format_bytes(2 * full)}."
    given = "From there the kernel gives the cache back." if 2 * file_bytes > budget_bytes else ""
    sketch.write(ax, (560, 60), "Each byte stands in the page cache\nand again in the array.")
    sketch.write(ax, (560, 122), "\n".join(filter(None, [turns, given])))
    sketch.write(ax, (560, 184), ends)
    alt = f"Each byte that np.load reads is charged twice. {turns} {given} {ends}"
    return Picture(figure, " ".join(alt.split()))


@style.styled
def _draw_charge(figure: Figure, steps: list[Snapshot], budget_bytes: int) -> None:
    """Draw the stack over the bytes that have been read: they take the place of the seconds."""
    panel = figure.add_axes((0.1, 0.15, 0.43, 0.68))
    _, full, read = (step.seconds for step in steps)
    frame_memory(panel, budget_bytes, "", 1.3 * budget_bytes, read)
    panel.set_xlim(0, max(read, budget_bytes))
    panel.set_xticks([])
    panel.set_xlabel("bytes read so far")
    Stack(panel, ()).show(memory_curves(steps))
    sketch.write(panel, (0.84 * full, 1.56 * full), "in the page cache", va="center")
    sketch.write(panel, (0.6 * read, 0.25 * read), "in the array", va="center")
