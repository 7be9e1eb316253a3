"""A slider: it draws anew when it is moved, and without a front end it shows one picture."""

import pytest

from helpers import sliders
from helpers.drawing.front_end import Place
from helpers.drawing.mechanisms import draw_read_ahead
from helpers.drawing.pictures import Picture
from helpers.sliders import Slider


def _draw(pages: int) -> Picture:
    return draw_read_ahead(512, 4096, 4096 * pages)


def test_moving_the_slider_draws_the_picture_anew() -> None:
    box = Slider(_draw, [1, 8, 64], name="pages").widget()
    slider, picture = box.children
    assert slider.description == "pages"
    assert "1 page, 4 KiB" in picture.value
    slider.value = 64
    assert "64 pages, 256 KiB" in picture.value


def test_a_watched_notebook_gets_the_widget(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(notebook=True, watched=True, widgets=True)
    monkeypatch.setattr(sliders, "detect_place", lambda: place)
    bundle = Slider(_draw, [1, 8])._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/plain"].startswith("Move the slider")


def test_elsewhere_it_is_the_first_picture_and_what_to_call() -> None:
    bundle = Slider(_draw, [8, 64], name="pages")._repr_mimebundle_()
    assert "8 pages, 32 KiB" in bundle["text/html"]
    assert "call the function with another pages: 8, 64" in bundle["text/plain"]
    assert set(bundle) == {"text/plain", "text/html"}


def test_it_starts_where_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    slider, picture = Slider(_draw, [1, 8, 64], start=8).widget().children
    assert (slider.value, slider.options) == (8, (1, 8, 64))
    assert "8 pages, 32 KiB" in picture.value
    assert "8 pages, 32 KiB" in Slider(_draw, [1, 8], start=8)._repr_mimebundle_()["text/html"]
    with pytest.raises(ValueError, match=r"start is 9: pass one of the values \[1, 8\]"):
        Slider(_draw, [1, 8], start=9)


def test_no_values_are_refused() -> None:
    with pytest.raises(ValueError, match=r"values is \[\]: pass at least one value of pages"):
        Slider(_draw, [], name="pages")
