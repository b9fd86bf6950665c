"""Plots: labels that never overlap, bars with their values, files that are whole or absent."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import rc_context
from matplotlib.text import Text
from PIL import Image

from hopforge.model.output import plots
from hopforge.model.output.plots import (
    Line,
    draw_grouped_bars,
    draw_heat_map,
    draw_lines,
    draw_paper_points,
    new_figure,
    save_figure,
    style_axes,
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12), st.floats(0.1, 50))
def test_spread_keeps_order_and_gap(positions, gap):
    placed = plots._spread(positions, gap)
    order = np.argsort(positions, kind="stable")
    steps = np.diff(np.asarray(placed)[order])
    assert (steps >= gap - 1e-6).all()
    assert np.mean(placed) == pytest.approx(np.mean(positions), abs=1e-6)


def test_spread_leaves_alone_what_is_apart():
    assert plots._spread([5.0, 1.0, 9.0], 2.0) == [5.0, 1.0, 9.0]


def test_labels_of_equal_ends_do_not_overlap(tmp_path):
    figure, (axes,) = new_figure()
    style_axes(axes, title="t", x_label="x (ns)", y_label="y (%)")
    draw_lines(axes, [Line(f"curve {i}", [1, 2], [i, 3.0], color=i) for i in range(5)])
    save_figure(figure, tmp_path / "f.png")
    boxes = [Text.get_window_extent(text) for text in axes.texts]  # Annotation's own extent includes the leader
    assert len(boxes) == 5
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert all(box.x0 > axes.get_window_extent().x1 for box in boxes)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("full", [(), ([1.0, 3.0],)])
def test_a_curve_without_points_has_a_label_and_draws(tmp_path, full, log):
    figure, (axes,) = new_figure()
    style_axes(axes, title="t", x_label="x (ns)", y_label="y (%)", log_x=log, log_y=log)
    lines = [Line(f"curve {len(y)}", y, y, error=y) for y in ([], *full)]
    draw_lines(axes, lines)
    save_figure(figure, tmp_path / "f.png")
    assert (tmp_path / "f.png").exists()
    assert [text.get_text() for text in axes.texts] == [line.label for line in lines]
    box = axes.get_window_extent()
    assert all(box.y0 - 20 < Text.get_window_extent(text).y0 < box.y1 for text in axes.texts)


def test_axes_say_title_and_units():
    _, (axes,) = new_figure()
    style_axes(axes, title="misses", x_label="ways", y_label="misses (%)", log_x=True, x_ticks=[1, 2, 4])
    assert axes.get_title(loc="left") == "misses"
    assert axes.get_ylabel() == "misses (%)"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "2", "4"]


def test_bars_carry_values_and_leave_gaps():
    _, (axes,) = new_figure()
    draw_grouped_bars(axes, groups=["a", "b"], series={"paper": [1.0, None], "ours": [2.0, 2.5]})
    assert sorted(text.get_text() for text in axes.texts) == ["1", "2", "2.5"]
    assert len(axes.patches) == 3
    assert axes.patches[0].get_facecolor()[3] == 0  # the paper's bars are hollow


@pytest.mark.parametrize(("name", "turned"), [("short", False), ("a_name_as_long_as_a_variant_may_have_it", True)])
def test_names_below_bars_do_not_touch(name, turned):
    figure, (axes,) = new_figure()
    draw_grouped_bars(axes, groups=[f"{name}{k}" for k in range(6)], series={"makespan": list(range(1, 7))})
    figure.canvas.draw()
    labels = axes.get_xticklabels()
    assert [label.get_rotation() for label in labels] == [30 * turned] * 6
    assert axes.get_legend() is None  # one series is what the axis says


def test_panels_in_rows():
    figure, axes = new_figure(panels=3, columns=2, width_in=4, height_in=3)
    assert figure.get_size_inches().tolist() == [8, 6]
    places = [one.get_subplotspec() for one in axes]
    assert [(place.rowspan.start, place.colspan.start) for place in places] == [(0, 0), (0, 1), (1, 0)]


def test_paper_points_are_labelled_once():
    _, (axes,) = new_figure()
    draw_paper_points(axes, [1, 2], [3, 4], label="paper")
    assert [text.get_text() for text in axes.texts] == ["paper"]


def test_saved_file_is_a_png_and_nothing_else_is_left(tmp_path):
    figure, (axes,) = new_figure(panels=1)
    axes.plot([1, 2], [3, 4])
    save_figure(figure, tmp_path / "deep" / "f.png")
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["f.png"]
    with Image.open(tmp_path / "deep" / "f.png") as image:
        assert image.format == "PNG"
        assert image.size[0] > 800


def test_a_failed_save_leaves_the_old_file(tmp_path):
    target = tmp_path / "f.png"
    target.write_bytes(b"old")
    figure, _ = new_figure()
    figure.savefig = lambda *_args, **_kwargs: (_ for _ in ()).throw(OSError("disk full"))
    with pytest.raises(OSError, match="disk full"):
        save_figure(figure, target)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(("call", "message"), [
    (lambda axes: new_figure(panels=0), "panels must be at least 1, not 0"),
    (lambda axes: draw_lines(axes, []), "lines must have at least 1 entry, not 0"),
    (lambda axes: draw_grouped_bars(axes, groups=["a"], series={}), "series must have at least 1 entry, not 0"),
    (lambda axes: draw_grouped_bars(axes, groups=["a"], series={"s": [1, 2]}), "'s' must have groups=1 values, not 2"),
])
def test_mistakes(call, message):
    _, (axes,) = new_figure()
    with pytest.raises(ValueError, match=message):
        call(axes)


def test_scales_are_chosen_before_anything_is_drawn() -> None:
    """Names stand at the ends of lines, placed when these are drawn: a scale that is set later leaves them behind."""
    root = Path(__file__).parents[3]
    found = [
        path.relative_to(root).as_posix()
        for layer in ("model", "sim", "gen", "src/hopforge")
        for path in (root / layer).rglob("*.py")
        if re.search(r"\.set_[xy]scale\(", path.read_text(encoding="utf-8"))
    ]
    # set before the first line, with the ticks that this scale wants
    assert sorted(found) == ["model/output/plots.py", "sim/reproduce/lookup/conflicts.py"]


@pytest.mark.parametrize("shape", [(4, 4), (2, 3), (16, 64)])
def test_a_heat_map_names_whole_rows_and_columns(shape: tuple[int, int]) -> None:
    figure, (axes,) = new_figure()
    style_axes(axes, title="t", x_label="x", y_label="y")
    draw_heat_map(axes, np.zeros(shape), label="l", largest=1.0)
    figure.draw_without_rendering()
    for axis, size in ((axes.yaxis, shape[0]), (axes.xaxis, shape[1])):
        shown = [tick for tick in axis.get_majorticklocs() if -0.5 <= tick <= size - 0.5]
        assert len(shown) >= 2 and all(tick == round(tick) for tick in shown)


@pytest.mark.parametrize("setting", ["figure.autolayout", "figure.constrained_layout.use"])
def test_a_picture_with_a_scale_is_saved_whatever_the_settings_of_matplotlib_are(tmp_path: Path, setting: str) -> None:
    with rc_context({setting: True}):
        figure, (axes,) = new_figure()
        draw_heat_map(axes, np.ones((3, 4)), label="%", largest=1.0)
        save_figure(figure, tmp_path / "f.png")
        save_figure(figure, tmp_path / "again.png")
    assert (tmp_path / "f.png").read_bytes() == (tmp_path / "again.png").read_bytes()
