"""What a run says of its traffic and routing."""

from hopforge.model.config import parse_config
from hopforge.sim.run.run_words import failure_plan_rows, run_rows

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


def test_a_sweep_says_that_something_fails_in_every_run() -> None:
    whole = parse_config(TEXT)
    failures = "[{cycle: 900, links: [[1, 2]]}, {cycle: 70, switches: [0]}]"
    failing = parse_config(TEXT + f"simulation: {{failures: {failures}}}\n")
    assert failure_plan_rows({"": whole}) == []
    words = "in every run, from cycle 70, 900 on"
    assert failure_plan_rows({"": failing}) == [("failures", words)]
    assert failure_plan_rows({"a": whole, "b": failing}) == [("failures", f"a: none; b: {words}")]
