"""How full buffers are, and loads over time: counted beside what the state itself says."""

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.sim.run.buffer_samples import BufferSamples, router_flits
from hopforge.sim.run.series_frames import MOST_FRAMES, SeriesFrames
from hopforge.sim.run.simulation import Simulation

MESH = "name: m\ntopology: {kind: mesh, radices: [3, 2]}\nrouter: {vcs: 2, buffer_flits: 5}\n"


def test_samples_are_those_of_the_state() -> None:
    run = Simulation(parse_config(MESH), 0.6, 1)
    samples = BufferSamples(run.state)
    seen = []
    for _ in range(5):
        run.advance(40)
        samples.note()
        seen.append(run.state["input_vc"]["flits"].astype(int).copy())
    table = samples.columns()
    number = (np.asarray(table["router"]) * run.topology.max_ports + table["port"]) * 2 + table["vc"]
    assert np.asarray(table["flits"]).sum() > 0
    assert np.asarray(table["flits"]).tolist() == np.mean(seen, axis=0)[number].tolist()
    assert np.asarray(table["flits_max"]).tolist() == np.max(seen, axis=0)[number].tolist()
    assert set(np.asarray(table["places"]).tolist()) == {5}
    # two VCs of every port with a link (7 links, two ends) or a host
    assert len(number) == 2 * (2 * 7 + 6)
    assert router_flits(run.state).sum() == seen[-1].sum()
    samples.reset()
    assert (samples.samples, np.asarray(samples.columns()["flits"]).sum()) == (0, 0)


def test_neighbouring_bins_become_one_frame() -> None:
    topology = Simulation(parse_config(MESH), 0.1, 1).topology
    channels = len(topology.channels().src_router)
    bins = 2 * MOST_FRAMES + 1
    frames = SeriesFrames(topology, bins)
    assert frames.bins_per_frame == 3
    for number in range(bins):
        frames.note(number, float(number + 1), np.full(channels, float(number)), np.full(topology.routers, 2))
    assert frames.until[:2] == [3.0, 6.0]
    assert frames.loads[0].tolist() == pytest.approx([1.0] * channels)
    assert frames.until[-1] == bins
    last = bins % 3 or 3
    assert frames.loads[-1, 0] == pytest.approx(np.arange(bins - last, bins).mean(), rel=1e-5)
    assert frames.flits[-1].tolist() == pytest.approx([2.0] * topology.routers)
    assert frames.metadata("µs", 0.5)["bins_per_frame"] == 3
