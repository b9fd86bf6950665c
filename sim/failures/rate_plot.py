"""Rates of a run with failures over time as a picture."""

from pathlib import Path

from hopforge.model.output.plots import GREY, Line, draw_lines, new_figure, save_figure, style_axes
from hopforge.sim.failures.reconfiguration import Reconfiguration


def plot_rates(failures: Reconfiguration, title: str, path: Path) -> None:
    """Draw sent and accepted flits over time; a line where something fails or works again."""
    series = failures.series
    figure, (axes,) = new_figure(width_in=9.0)
    scale, labels = 1.0, ("cycle", "flits per host and cycle")
    if failures.flit_cycles != 1:
        scale, labels = failures.cycle_ns / 1000, ("time (µs)", "share of the injection bandwidth")
    style_axes(axes, title=title, x_label=labels[0], y_label=labels[1])
    for record in failures.records:
        axes.axvline(record.cycle * scale, color=GREY, linewidth=0.9, linestyle=":")
        if record.reprogrammed_cycle >= 0:
            axes.axvspan(record.stopped_cycle * scale, record.reprogrammed_cycle * scale, color="#eeeeee", linewidth=0)
    middle = (series["cycle"] + (series["cycle"].diff().median() if len(series) > 1 else 0) / 2) * scale
    draw_lines(
        axes,
        [
            Line("accepted", middle, series["accepted"], 0, marked=False),
            Line("sent", middle, series["sent"], 1, dashed=True, marked=False),
        ],
    )
    save_figure(figure, path)
