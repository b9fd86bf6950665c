"""Connections that are held: single flits see no difference, longer packets leave in one go (router.md)."""

from itertools import pairwise

import pytest

from hopforge.model.config import parse_config
from hopforge.model.config.load import ConfigError
from hopforge.model.network.core.event_log import put_log
from hopforge.model.network.core.kinds import GRANTED
from hopforge.sim.run.simulation import Simulation

#: eight hosts at two routers; those of the first send to those of the second over one link
LINK = "topology: {kind: mesh, radices: [2], hosts_per_router: 4}"
OVER = "pattern: destinations, destinations: [4, 5, 6, 7, 0, 1, 2, 3]"


def grants(router: str, flits: int) -> list[tuple[int, int, int, int]]:
    """(cycle, input VC, output VC, packet) of every grant in 1000 cycles."""
    text = f"name: x\n{LINK}\nrouter: {{vcs: 2, {router}}}\ntraffic: {{packet_flits: {flits}, {OVER}}}\n"
    run = Simulation(parse_config(text), 0.5, 1)
    put_log(run.state, 1 << 16)
    run.advance(1000)
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    return [(cycle, n, m, packet) for cycle, kind, n, m, packet, _ in log.tolist() if kind == GRANTED]


@pytest.mark.parametrize("sa", ["islip", "input_first", "wavefront"])
def test_packets_of_one_flit_see_no_difference(sa: str) -> None:
    plain, held = grants(f"sa: {sa}", 1), grants(f"sa: {sa}, hold_switch: true", 1)
    assert len(plain) > 1000
    assert plain == held


def test_packets_leave_in_one_go() -> None:
    def changes(router: str) -> float:
        """Share of the grants for the crowded link that follow one of another packet, of four-flit packets."""
        link = [(cycle, packet) for cycle, _, m, packet in grants(router, 4) if m // 2 == 4][200:]  # router 0, port 4
        assert len(link) > 500
        return sum(a[1] != b[1] for a, b in pairwise(link)) / len(link)

    assert changes("hold_switch: true") == pytest.approx(1 / 4, abs=0.03)
    assert changes("hold_switch: false") > 0.8


def test_what_cannot_stand_together_is_one_line() -> None:
    with pytest.raises(ConfigError, match=r"router.hold_switch: must be false with va=free_queue"):
        parse_config(f"name: x\n{LINK}\nrouter: {{hold_switch: true, va: free_queue}}\n")
