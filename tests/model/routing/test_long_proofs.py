"""Proofs of routers with many ports: each dependency once, an end that is told, and how far it is."""

import sys
from pathlib import Path

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.network.settings import RouterParameters
from hopforge.model.progress import told
from hopforge.model.routing import reachable, short_proof
from hopforge.model.routing.deadlock import DeadlockError, check_routing, relation_to_prove
from hopforge.model.routing.fields_read import fields_read
from hopforge.model.routing.interpreted_reachable import InterpretedExploration
from hopforge.model.routing.reachable import Exploration, packet_lengths
from hopforge.model.routing.short_proof import prove_routing
from hopforge.sim.run.simulation import Simulation

sys.path.insert(0, str(Path(__file__).parent))
from short_proofs import Case, grid_of, prepared

HYPERX = "{kind: hyperx, sizes: [3, 3], hosts_per_router: 3}"
TORUS = "{kind: torus, radices: [3, 4], hosts_per_router: 3}"
DRAGONFLY = "{kind: dragonfly, p: 3, a: 2, h: 1}"
RANDOM = "{kind: random_regular, routers: 8, degree: 3, hosts_per_router: 3, seed: 1}"


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(
    ("network", "routing", "vcs"),
    [(TORUS, "star_channel", 3), (DRAGONFLY, "par", 5), (HYPERX, "dal", 6), (RANDOM, "shortest_escape", 3)],
)
def test_answers_that_are_the_same_again_hide_no_dependency(network: str, routing: str, vcs: int, keep: bool) -> None:
    """As the exploration in plain Python, which takes every state by itself."""
    run = Simulation(parse_config(
        f"name: a\ntopology: {network}\nrouter: {{vcs: {vcs}, vc_release: credits}}\n"
        f"routing: {{algorithm: {routing}, check: false}}\n"
    ), 0.1, 1)  # fmt: skip
    relation, lengths = relation_to_prove(run.plan), packet_lengths(run.state)
    given = run.plan, relation, run.state, fields_read(relation), list(range(0, run.topology.hosts, 3)), lengths
    ours, plain = Exploration(*given), InterpretedExploration(*given)
    assert ours.walk(keep=keep) is None and plain.walk(keep=keep) is None
    assert ours.depends.any() and np.array_equal(ours.depends, plain.depends)
    if keep:
        assert set(steps_of(ours)) == set(steps_of(plain))
        assert np.array_equal(ours.stuck_channels(stretched=True), plain.stuck_channels(stretched=True))


def steps_of(exploration: Exploration) -> list[tuple[tuple[int, ...], int, tuple[int, ...]]]:
    """State, channel and state behind it, of all steps that are kept."""
    classes = [tuple(one) for one in exploration._classes[: exploration.classes].tolist()]
    _, state, channel, after = (part.tolist() for part in exploration.kept_steps())
    assert len(state) > exploration.classes
    return [(classes[a], m, classes[b]) for a, m, b in zip(state, channel, after, strict=True)]


def test_a_long_proof_says_how_far_it_is_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("", grid_of("torus", (4, 3, 4)), prepared("dor", 2), RouterParameters(vcs=2))
    plan = case.prepare(case.topology)
    state = case.state(case.topology, plan)
    found, words = check_routing(case.topology, plan, state, "dor"), []
    monkeypatch.setattr(reachable, "LOOK", 0)
    with told(words.append):
        assert check_routing(case.topology, plan, state, "dor") == found
    assert words[0] == "proving freedom from deadlock: 1 of 48 destinations"
    assert words[20] == "proving freedom from deadlock: 21 of 48 destinations, about 1 s left"
    monkeypatch.setattr(reachable, "MAX_WORK", 10)
    with pytest.raises(DeadlockError, match=r"dor on the .* is not proved free of deadlock: more than about 50 s of"):
        check_routing(case.topology, plan, state, "dor")


def test_networks_of_many_ports_have_the_short_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("", grid_of("torus", (4, 3, 4)), prepared("dor", 2), RouterParameters(vcs=2))
    plan = case.prepare(case.topology)
    state = case.state(case.topology, plan)
    monkeypatch.setattr(short_proof, "WHOLE_INPUTS", 1000)
    assert prove_routing(case.topology, plan, state, "dor", build=case.state).startswith("by symmetry: ")
