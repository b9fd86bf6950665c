"""The filter of requests against the golden one, and routers with it against the golden router."""

from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from hopforge.hw.allocation.class_filter import ClassFilter
from hopforge.hw.router.router import Router
from hopforge.model.router.quality import Quality, SwitchQuality
from hopforge.sim.drive.replay import replay_amaranth
from hopforge.sim.drive.router import router_replay
from hopforge.sim.drive.router_stimulus import router_stimulus
from hopforge.sim.drive.router_traffic import RouterTraffic
from hopforge.sim.drive.router_variants import router_variant


@pytest.mark.parametrize("kind", ["strict", "weighted"])
@pytest.mark.parametrize(("ports", "of_vc"), [(2, (0, 1)), (3, (0, 1, 0)), (5, (2, 1, 0, 1)), (2, (0,)), (1, (0, 1))])
def test_requests_that_count(kind: Any, ports: int, of_vc: tuple[int, ...]) -> None:
    """Half of the requests are granted, as an allocator might."""
    vcs, classes = len(of_vc), max(of_vc) + 1
    rng = np.random.default_rng(ports)
    quality = Quality(
        kind=kind, of_vc=of_vc, priorities=tuple(rng.integers(0, 3, classes).tolist()),
        weights=tuple(rng.integers(1, 6, classes).tolist()),
    )  # fmt: skip
    dut, golden = ClassFilter(ports=ports, vcs=vcs, quality=quality), SwitchQuality(quality, ports)

    async def bench(ctx: Any) -> None:
        for _ in range(300):
            asked = [{v: int(rng.integers(ports)) for v in range(vcs) if rng.random() < 0.6} for _ in range(ports)]
            ctx.set(
                dut.requests, sum(1 << (i * vcs + v) * ports + o for i, of in enumerate(asked) for v, o in of.items())
            )
            due = golden.due(asked)
            got = ctx.get(dut.due)
            assert got == sum(1 << (i * vcs + v) * ports + o for i, of in enumerate(due) for v, o in of.items())
            grants = granted_vc = 0
            taken: set[int] = set()
            for i, of_input in enumerate(due):
                for v, o in of_input.items():
                    if o not in taken and rng.random() < 0.5:
                        taken.add(o)
                        grants |= 1 << i * ports + o
                        granted_vc |= 1 << i * vcs + v
                        golden.sent(v, o)
                        break
            ctx.set(dut.grants, grants)
            ctx.set(dut.granted_vc, granted_vc)
            if kind == "weighted":
                await ctx.tick()
            else:  # without a register
                await ctx.delay(1e-6)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6, if_exists=True)
    simulator.add_testbench(bench)
    simulator.run()


def test_classes_that_do_not_fit_are_refused() -> None:
    quality = Quality(kind="strict", of_vc=(0, 1), priorities=(0, 1), weights=(1, 1))
    with pytest.raises(ValueError, match=r"^quality.of_vc must name a class for each of vcs=3, not 2$"):
        ClassFilter(ports=2, vcs=3, quality=quality)


#: each kind and each allocator; the others in the study
QUICK: list[tuple[str, dict[str, str]]] = [
    ("strict", {}),
    ("weighted", {"sa": "input_first", "va": "free_queue"}),
    ("strict", {"sa": "wavefront"}),
]
SLOW: list[tuple[str, dict[str, str]]] = [
    ("weighted", {}),
    ("strict", {"sa": "input_first", "va": "free_queue"}),
    ("weighted", {"sa": "wavefront"}),
]


@pytest.mark.parametrize(("kind", "more"), [*QUICK, *(pytest.param(*each, marks=pytest.mark.study) for each in SLOW)])
def test_routers_show_every_output_of_the_golden_one(kind: Any, more: dict[str, Any]) -> None:
    quality = Quality(kind=kind, of_vc=(0, 1, 0), priorities=(0, 2), weights=(1, 3))
    params = router_variant(
        7, rc="table", ports=3, vcs=3, width_bits=40, speculation=False, lookahead=False, quality=quality, **more
    )
    stimulus = router_stimulus(params, RouterTraffic(cycles=500, seed=2))
    assert stimulus.packets > 30
    result = replay_amaranth(Router(params=params), router_replay(stimulus))
    assert result.first is None, str(result.first)
