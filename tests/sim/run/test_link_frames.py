"""Loads of links over time: in every bin, for every router model, and as pictures."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from hopforge.cli import app
from hopforge.model.config import parse_config
from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import DragonflyConfig, MeshConfig
from hopforge.model.errors import UserError
from hopforge.model.topology import Topology, build
from hopforge.sim.packet.network import PacketNetwork
from hopforge.sim.packet.prepared import series_network
from hopforge.sim.packet.series import run_packet_series
from hopforge.sim.packet.settings import PacketError
from hopforge.sim.run.link_frames import LinkPicture, check_frames, write_frames
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.run.time_series import run_series

TORUS = """
name: t
topology: {kind: torus, radices: [4, 4]}
traffic: {pattern: uniform}
simulation: {load: 0.2, max_cycles: 1000, series_bins: 8}
"""
PACKETS = """
name: p
topology: {kind: torus, radices: [4, 4]}
router: {model: packet}
routing: {algorithm: por}
packet: {messages: 4}
traffic: {pattern: uniform, message_packets: 20}
simulation: {load: 0.3, series_bins: 8%s}
"""


def nothing(done: int, total: int) -> None:
    assert done <= total


def network(kind: str) -> Topology:
    if kind == "dragonfly":
        return build(DragonflyConfig(kind="dragonfly", p=2, a=4, h=2), AddressConfig(chunk_bits=4))
    return build(MeshConfig(kind="mesh", radices=(3, 4)), AddressConfig())


@pytest.mark.parametrize("kind", ["dragonfly", "mesh"])
def test_pictures_show_the_loads(kind: str, tmp_path: Path) -> None:
    topology = network(kind)
    count = len(topology.channels().src_router)
    loads = np.zeros((3, count))
    loads[1, 0], loads[2] = 0.5, 1.0
    write_frames(topology, loads, ["one", "two", "three"], tmp_path, nothing)
    frames = sorted((tmp_path / "frames").iterdir())
    assert [path.name for path in frames] == ["0000.png", "0001.png", "0002.png"]
    with Image.open(tmp_path / "links.gif") as film:
        assert (getattr(film, "n_frames", 1), film.info["loop"]) == (3, 0)
        size = film.size
    pictures = [np.asarray(Image.open(path), np.int64) for path in frames]
    assert all(picture.shape == (size[1], size[0], 3) for picture in pictures)
    lower = size[1] // 20  # below the words
    changed = [(pictures[0] != picture).any(axis=2)[lower:].mean() for picture in pictures[1:]]
    assert 0 < changed[0] < changed[1] / 4


def test_each_panel_of_a_grid_is_one_direction() -> None:
    topology = network("mesh")
    picture = LinkPicture(topology, 1.0)
    channels = topology.channels()
    loads = (channels.dst_router - channels.src_router == 3).astype(float)  # to +y, three routers in a row
    picture.show(loads, "")
    shown = [np.asarray(axes.images[0].get_array(), float) for axes in picture.figure.axes if axes.images][:4]
    wanted = [np.array([0.0]), np.array([0.0]), np.array([1.0]), np.array([0.0])]
    for panel, values in zip(shown, wanted, strict=True):
        assert panel.shape == (4, 3)
        assert (np.unique(panel[np.isfinite(panel)]) == values).all()


def test_too_many_bins_and_no_links() -> None:
    check_frames(500)
    with pytest.raises(UserError, match=r"--frames draws at most 500 bins, not simulation\.series_bins=501"):
        check_frames(501)
    with pytest.raises(UserError, match="there are no links between routers"):
        write_frames(network("mesh"), np.zeros((2, 0)), ["", ""], Path())


def test_loads_of_the_bins_are_those_of_the_counters() -> None:
    run = Simulation(parse_config(TORUS), 0.2, 1)
    series = run_series(run, nothing, channels=True)
    assert series.channels.shape == (8, 64)
    assert series.channels.max(axis=1) == pytest.approx(series.bins["channel_load_max"].to_numpy())
    assert series.channels.mean(axis=1) == pytest.approx(series.bins["channel_load_mean"].to_numpy())
    last = run.state["output_port"]["flits"].reshape(16, -1)
    channels = run.topology.channels()
    assert series.channels[-1] * 125 == pytest.approx(last[channels.src_router, channels.src_port])
    assert len(run_series(Simulation(parse_config(TORUS), 0.2, 1), nothing).channels) == 0


def test_packet_routers_in_bins() -> None:
    config = parse_config(PACKETS % "")
    network = PacketNetwork(config, 0.3, 1)
    series = run_packet_series(network, nothing)
    bins, settings = series.bins, network.settings
    assert series.channels.shape == (8, 64)
    cycles = int(network.period_cycles * settings.messages)
    ends = np.array([cycles * k // 8 for k in range(9)])
    sent = (series.channels * np.diff(ends)[:, None]).sum() / settings.send_cycles
    assert sent == pytest.approx(float(network.channel_packets().sum()))
    hops = network.state["link"]["sent"].sum()
    assert hops == sent  # every link is a channel between routers
    assert bins["accepted"].iloc[2:].mean() == pytest.approx(0.3, abs=0.06)
    assert (bins["latency_p50"] <= bins["latency_p99"]).all()
    assert series.distribution["packets"].sum() == network.histogram.sum()
    with pytest.raises(PacketError, match=r"simulation.series_routers is for other router models than packet"):
        series_network(parse_config(PACKETS % ", series_routers: [1]"), 0.3, 1)


@pytest.mark.parametrize("text", [TORUS, pytest.param(PACKETS % "", marks=pytest.mark.study)])
def test_the_command_draws(text: str, tmp_path: Path) -> None:
    (tmp_path / "c.yml").write_text(text)
    ran: Any = CliRunner().invoke(
        app, ["series", str(tmp_path / "c.yml"), "--frames", "-o", str(tmp_path / "out")], catch_exceptions=False
    )
    assert ran.exit_code == 0
    assert len(list((tmp_path / "out" / "frames").glob("*.png"))) == 8
    assert {"links.gif", "series.csv", "series.png"} <= {path.name for path in (tmp_path / "out").iterdir()}
