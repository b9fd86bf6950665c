"""Proofs of routers with many ports: each dependency once, an end that is told, and how far it is."""

import sys
from pathlib import Path

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.config.routing import RoutingConfig
from hopforge.model.errors import UserError
from hopforge.model.network.settings import RouterParameters
from hopforge.model.progress import told
from hopforge.model.routing.contract.fields_read import fields_read
from hopforge.model.routing.proof import reachable, short_proof
from hopforge.model.routing.proof.deadlock import DeadlockError, _stop_text, check_routing, relation_to_prove
from hopforge.model.routing.proof.interpreted_reachable import InterpretedExploration
from hopforge.model.routing.proof.reachable import Exploration, packet_lengths
from hopforge.model.routing.proof.reachable_kernel import PROOF_LIMIT_S
from hopforge.model.routing.proof.short_proof import prove_routing
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
    with pytest.raises(DeadlockError, match=r"not proved free of deadlock: more than about 1e-05 s of processor time "
                       r"\(.*\); raise routing.proof_limit_s, or set routing.check: false"):  # fmt: skip
        check_routing(case.topology, plan, state, "dor", seconds=1e-5)


def test_destinations_that_take_longest_come_first_and_the_proof_goes_on() -> None:
    """It ends where a fifth of 10 s is done, and 360 destinations like the first eight would take more than 40 s."""
    run = Simulation(
        parse_config(f"name: a\ntopology: {TORUS}\nrouter: {{vcs: 3}}\nrouting: {{algorithm: dor, check: false}}\n"),
        0.1, 1,
    )  # fmt: skip
    relation, lengths = relation_to_prove(run.plan), packet_lengths(run.state)
    hosts = list(range(run.topology.hosts)) * 10
    exploration = Exploration(run.plan, relation, run.state, fields_read(relation), hosts, lengths, seconds=10)
    # (8, 1.9) of 86 s, too early; (80, 8) of 36 s, which may yet be 10
    for done, work, ends in [(7, 9, False), (8, 1.9, False), (8, 2, True), (80, 8, False), (80, 9, True)]:
        exploration._info[reachable.NEXT], exploration._info[reachable.WORK] = done, int(work * 1e9)
        assert exploration._look(0) == ends, (done, work)
    stop = exploration._stop(reachable.LONG, 0)
    assert stop.value == 9 * 360 // 80 + 1
    text = _stop_text(run.topology, run.plan, "dor", fields_read(relation), stop, 10)
    assert "not proved free of deadlock: more than about 10 s of processor time, of about 41 s (it reads" in text


def test_more_seconds_prove_what_fewer_do_not() -> None:
    """`routing.proof_limit_s` has limits, and both explorations end at the work that they are given."""
    text = (
        f"name: a\ntopology: {TORUS}\nrouter: {{vcs: 3, vc_release: credits}}\n"
        "routing: {algorithm: star_channel, proof_limit_s: %d}\n"
    )
    assert parse_config(text % 1).routing.proof_limit_s == 1
    assert RoutingConfig().proof_limit_s == PROOF_LIMIT_S
    for bad in (0, 604_801):
        with pytest.raises(UserError, match=r"routing\.proof_limit_s: must be at (least 1|most 604,?800)"):
            parse_config(text % bad)
    assert Simulation(parse_config(text % 7), 0.1, 1).proof
    run = Simulation(parse_config(text.replace("star_channel", "star_channel, check: false") % 7), 0.1, 1)
    relation = relation_to_prove(run.plan)
    given = run.plan, relation, run.state, fields_read(relation), [0], packet_lengths(run.state)
    for kind in Exploration, InterpretedExploration:
        needed = kind(*given)
        assert needed.walk() is None
        work = int(needed._info[reachable.WORK])
        assert kind(*given, seconds=work * 1.01e-9).walk() is None
        stop = kind(*given, seconds=work * 0.5e-9).walk()
        assert stop is not None and stop.code == reachable.LONG


def test_networks_of_many_ports_have_the_short_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("", grid_of("torus", (4, 3, 4)), prepared("dor", 2), RouterParameters(vcs=2))
    plan = case.prepare(case.topology)
    state = case.state(case.topology, plan)
    monkeypatch.setattr(short_proof, "WHOLE_INPUTS", 1000)
    assert prove_routing(case.topology, plan, state, "dor", build=case.state).startswith("by symmetry: ")
