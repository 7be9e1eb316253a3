"""A slider over a few values, beside a picture that is drawn anew for each.

Where no widget can be shown, or nobody is there to move it, the picture of the starting value
stands alone, and a line says how to draw another.
"""

from collections.abc import Callable, Sequence
from typing import Any

from helpers.drawing.front_end import detect_place
from helpers.drawing.pictures import Picture


class Slider:
    """Shows itself as a slider and a picture. Moving it calls `draw` in the notebook's process."""

    def __init__(
        self,
        draw: Callable[[Any], Picture],
        values: Sequence[Any],
        name: str = "value",
        *,
        start: Any = None,
    ) -> None:
        """Keep what draws, the values to choose from, and the one shown at the start (the first).

        Raises ValueError for no values, and for a start that is none of them.
        """
        if not values:
            raise ValueError(f"values is {values!r}: pass at least one value of {name} to draw")
        self.draw, self.values, self.name = draw, list(values), name
        self.start = self.values[0] if start is None else start
        if self.start not in self.values:
            raise ValueError(f"start is {start!r}: pass one of the values {self.values}")

    def widget(self) -> Any:
        """Return the slider above the picture."""
        import ipywidgets

        slider = ipywidgets.SelectionSlider(
            options=self.values,
            value=self.start,
            description=self.name,
            continuous_update=False,
        )
        picture = ipywidgets.HTML(self.draw(self.start).html())

        def draw(change: dict[str, Any]) -> None:
            picture.value = self.draw(change["new"]).html()

        slider.observe(draw, names="value")
        return ipywidgets.VBox([slider, picture])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        del include, exclude
        place = detect_place()
        if place.widgets and place.watched:
            bundle: dict[str, Any] = self.widget()._repr_mimebundle_()
            return {**bundle, "text/plain": repr(self)}
        picture = self.draw(self.start)
        return {"text/plain": f"{picture.alt} {self!r}", "text/html": picture.html()}

    def __repr__(self) -> str:
        values = ", ".join(map(str, self.values))
        return f"Move the slider, or call the function with another {self.name}: {values}."
