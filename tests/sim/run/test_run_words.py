"""What a run says of its traffic and routing."""

from hopforge.model.config import parse_config
from hopforge.sim.run.run_words import run_rows

TEXT = "name: x\ntopology: {kind: mesh, radices: [4]}\nworkload: {kind: npb, benchmark: is, ranks: 4}\n"


def test_traffic_and_routing_of_a_run() -> None:
    found = dict(run_rows({"": parse_config(TEXT + "traffic: {packet_flits: 3}\n")}))
    assert found == {
        "traffic": "uniform, source bernoulli, packets of 3 flits", "routing": "dor, 4 virtual channels",
    }  # fmt: skip


def test_a_sweep_of_programs_has_no_pattern_and_without_a_network_no_routing() -> None:
    flow = parse_config(TEXT + "app: {engine: flow}\n")
    bare = parse_config(TEXT + "app: {engine: loggops}\n")
    program = ("traffic", "the program of section workload")
    assert run_rows({"": bare}, programs=True) == [program]
    assert run_rows({"a": bare, "b": flow}, programs=True) == [program, ("routing", "dor, 4 virtual channels")]
