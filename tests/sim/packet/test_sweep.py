"""Sweeps of packet routers: curves over the load for ABR, POR and OFR."""

from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from hopforge.cli import app
from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.sim.packet.network import PacketNetwork
from hopforge.sim.packet.simulation import run_packets
from hopforge.sim.packet.sweep import PACKET_SWEEP
from hopforge.sim.run.flit_sweep import FLIT_SWEEP
from hopforge.sim.run.model_runs import configured_sweep

CONFIG = """
name: curves
topology: {kind: torus, radices: [4, 4]}
router: {model: packet}
traffic: {pattern: transpose, message_packets: 24}
packet: {messages: 6}
routing: {algorithm: abr}
simulation: {loads: [0.1, 0.4, 1.0], seeds: 2, variants: {%s}}
"""
ALL = "minimal: {routing.algorithm: abr}, ofr: {routing.algorithm: ofr}"


def count(done: int, total: int) -> None:
    assert done <= total


def test_curves_of_two_algorithms(tmp_path: Path) -> None:
    config = parse_config(CONFIG % ALL)
    assert configured_sweep(config) is PACKET_SWEEP
    runs = PACKET_SWEEP.run(config, tmp_path, count, workers=1)
    assert len(runs) == 2 * 3 * 2
    one = runs[(runs["variant"] == "ofr") & (runs["load"] == 0.4) & (runs["seed"] == config.seed + 1)].iloc[0]
    alone = run_packets(PacketNetwork(config.variants["ofr"], 0.4, config.seed + 1))
    assert (one["lifetime_ns"], one["accepted"]) == (alone.lifetime_ns, alone.accepted)
    curve = PACKET_SWEEP.summarise(runs)
    assert curve["variant"].tolist() == ["minimal"] * 3 + ["ofr"] * 3
    for name in ("minimal", "ofr"):
        part = curve[curve["variant"] == name]
        assert part["lifetime_ns"].is_monotonic_increasing
        assert part["sustained"].tolist() == (part["lifetime_ns"] <= 1.2 * part["lifetime_ns"].iloc[0]).tolist()
        assert not part["sustained"].iloc[-1]
        assert part["sustained"].iloc[0]
    detours = (curve["outflanked"] + curve["wrapped"]).groupby(curve["variant"]).max()
    assert detours["minimal"] == 0 < detours["ofr"]
    seen: list[int] = []
    PACKET_SWEEP.run(config, tmp_path, lambda done, _: seen.append(done), workers=1)
    assert seen == [12]  # all kept
    PACKET_SWEEP.write(config, runs, tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"runs.csv", "curve.csv", "latency_load.png"}
    assert pd.read_csv(tmp_path / "out" / "curve.csv")["load"].tolist() == [0.1, 0.4, 1.0] * 2


@pytest.mark.parametrize(
    "variants, message",
    [
        ("bad: {packet.enter_slots: 1}", r"^simulation.variants.bad: packet.enter_slots must be at least 2 on a torus"),
        ("own: {topology.radices: [5, 3], traffic.pattern: bit_reverse}", r"^simulation.variants.own: .*bit_reverse"),
        (
            f"{ALL}, flits: {{router.model: input_queued, routing.algorithm: dor}}",
            r"^simulation.variants.flits: router.model must be packet as in other variants, not input_queued$",
        ),
    ],
)
def test_mistakes_name_the_variant(variants: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        config = parse_config(CONFIG % variants)
        configured_sweep(config).run(config, tmp_path, count, workers=1)


def test_the_command_shows_what_is_sustained(tmp_path: Path) -> None:
    (tmp_path / "c.yml").write_text(CONFIG % "minimal: {routing.algorithm: abr}")
    ran = CliRunner().invoke(app, ["sweep", str(tmp_path / "c.yml"), "-o", str(tmp_path / "out"), "--workers", "1"])
    assert ran.exit_code == 0, ran.output
    curve = pd.read_csv(tmp_path / "out" / "curve.csv")
    lines = [line.split() for line in ran.output.splitlines() if line.startswith("minimal")]
    knee = lines.pop(0)
    assert knee[1] == "saturates"
    assert [line[1] for line in lines] == ["0.1", "0.4", "1"]
    for line, row in zip(lines, curve.itertuples(), strict=True):
        assert line[2] == (f"{row.lifetime_ns:.0f}" if row.sustained else "saturated")


def test_flits_have_another_sweep() -> None:
    flits = parse_config(CONFIG % "flits: {router.model: input_queued, routing.algorithm: dor}")
    assert configured_sweep(flits) is FLIT_SWEEP
