"""A picture that is drawn anew while a cell runs, and once more as its last expression."""

from typing import Any

from helpers.drawing import front_end
from helpers.drawing.pictures import Picture


class LivePicture:
    """What fills while experiments run. Headless it is drawn once, at the end of its cell."""

    _live: Any = None

    def picture(self) -> Picture:
        """Return what there is now."""
        raise NotImplementedError

    def _show(self) -> None:
        if not front_end.detect_place().watched:
            return
        from IPython.display import display

        if self._live is None:
            self._live = display(self.picture(), display_id=True)
        else:
            self._live.update(self.picture())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        if self._live is not None:  # the last expression takes the place of what has moved
            self._live.update({"text/plain": "", "text/html": ""}, raw=True)
            self._live = None
        return self.picture()._repr_mimebundle_(include, exclude)
