"""Packets on detours are counted where routing marks them, and only there."""

import math
from pathlib import Path

import pytest

from hopforge.model.config import parse_config
from hopforge.sim.run.simulation import Simulation

CONFIGS = next(p for p in Path(__file__).parents if (p / "pyproject.toml").exists()) / "configs"


@pytest.mark.parametrize(
    ("model", "routing", "counted"),
    [
        ("input_output_queued", "algorithm: dor", True),
        ("input_output_queued", "algorithm: file, file: {file}", False),
        ("input_queued", "algorithm: dor", False),
    ],
)
def test_what_a_routing_file_keeps_in_user1_is_no_detour(model: str, routing: str, counted: bool) -> None:
    (file,) = CONFIGS.rglob("west_first.py")
    text = f"name: x\ntopology: {{kind: mesh, radices: [3, 3]}}\nrouter: {{model: {model}}}\n"
    traffic = "traffic: {source: interval}\n" if model == "input_output_queued" else ""
    config = parse_config(f"{text}routing: {{{routing.format(file=file)}}}\n{traffic}")
    run = Simulation(config, 0.1, 1, check=False)
    if model == "input_output_queued":
        run.state.queue_record["derouted"] = 5  # what packets with user1 would count
    assert run.built.derouted() == 5 if counted else math.isnan(run.built.derouted())
