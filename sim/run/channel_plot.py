"""Loads of all channels of a run as a picture."""

from pathlib import Path

import numpy as np

from hopforge.model.output.columns import Columns
from hopforge.model.output.plots import draw_heat_map, new_figure, save_figure, style_axes
from hopforge.model.routing.combined.configured import routing_network
from hopforge.model.topology import Topology
from hopforge.model.topology.floor_map import MAX_DRAWN_LINKS, draw_channel_values


def plot_channels(topology: Topology, channels: Columns, path: Path, time: str = "cycle") -> None:
    """Draw the load of every channel between routers as colours.

    Meshes and tori of two dimensions: one panel per direction with the routers in their places; others: curves of its
    drawing, with too many channels a map of output port over router. Loads are flits per `time`.
    """
    router, group, load = (np.asarray(channels[name]) for name in ("router", "port", "load"))
    largest = max(float(load.max()), 1e-9) if len(load) else 1.0
    logical = routing_network(topology)
    if topology.aggregation is not None:
        group = topology.aggregation.group[router, group]
    table = np.full((logical.max_ports, topology.routers), np.nan)
    table[group, router] = 0
    np.add.at(table, (group, router), load)
    label = f"flits per {time}" if topology.aggregation is None else f"flits per {time}, all members"
    if topology.kind in ("mesh", "torus") and len(topology.params["radices"]) == 2:
        largest = max(float(np.nanmax(table)), 1e-9)
        first, (width, height) = logical.max_ports - 4, topology.params["radices"]
        figure, panels = new_figure(panels=4, width_in=4.4, height_in=3.8)
        for axes, port, name in zip(panels, range(first, first + 4), ("+x", "−x", "+y", "−y"), strict=True):
            style_axes(axes, title=f"Channels to {name}", x_label="x of the router", y_label="y of the router")
            draw_heat_map(axes, table[port].reshape(int(height), int(width)), label=label, largest=largest)
    elif 0 < len(load) <= 2 * MAX_DRAWN_LINKS:
        draw_channel_values(topology, load, title=f"Channels between routers, {topology.name}", label=label, path=path)
        return
    else:
        figure, (axes,) = new_figure(width_in=9.0)
        style_axes(axes, title="Channels between routers", x_label="router", y_label="output port")
        draw_heat_map(axes, table, label=label, largest=largest)
    save_figure(figure, path)
