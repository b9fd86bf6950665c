"""Training programs of the tests: small sizes, and what one reads off their schedules."""

import numpy as np

from hopforge.model.config import parse_config
from hopforge.model.topology import build
from hopforge.model.workload.schedule import CALC, RECV, SEND
from hopforge.sim.programs.loggops_engine import LoggopsSettings, run_loggops
from hopforge.sim.traffic.scheduled import workload_schedule

#: a network that takes no time at all
IDEAL = LoggopsSettings(0.0, 0.0, 0.0, 0.0, 0.0, 1 << 40)
SMALL = {"layers": 4, "width": 64, "heads": 8, "feed_forward": 128, "vocabulary": 0, "sequence": 32}
RINGS = "allreduce: ring, allgather: ring, reduce_scatter: ring"


def made(workload, *, gflops=1.0, network="{kind: mesh, radices: [8, 8], hosts_per_router: 4}", sizes=None, seed=1):
    """Return the schedule of a training program; `workload`: its keys beside kind, sizes and collectives."""
    own = ", ".join(f"{key}: {str(value).lower()}" for key, value in {**SMALL, **(sizes or {})}.items())
    collectives = "" if "collectives" in workload else f"collectives: {{{RINGS}}}, "
    text = f"{{kind: training, sizes: {{{own}}}, {collectives}{workload}}}"
    config = parse_config(f"name: x\nseed: {seed}\ntopology: {network}\nworkload: {text}\n")
    topology = build(config.topology, config.address)
    schedule = workload_schedule(config.workload, topology, config.seed, gflops)
    check(schedule)
    return schedule


def check(schedule):
    """Every message has one receive of its size; nothing waits in a circle."""
    schedule.check_order()
    rows = {}
    for kind in (SEND, RECV):
        at = np.flatnonzero(schedule.kind == kind)
        here, there = schedule.rank[at], schedule.peer[at]
        ends = (here, there) if kind == SEND else (there, here)
        rows[kind] = sorted(zip(*(each.tolist() for each in (*ends, schedule.tag[at], schedule.size[at])), strict=True))
        assert len({row[:3] for row in rows[kind]}) == len(rows[kind]), "two messages of a pair have the same tag"
    assert rows[SEND] == rows[RECV]


def sent(schedule, stream):
    """Return int[rank]: bytes that each rank sends on a stream."""
    at = (schedule.kind == SEND) & (schedule.cpu == schedule.streams.index(stream))
    return np.bincount(schedule.rank[at], schedule.size[at].astype(float), schedule.ranks).astype(int)


def computed(schedule):
    """Return int[rank]: ns that each rank computes."""
    at = schedule.kind == CALC
    assert (schedule.cpu[at & (schedule.size > 0)] == 0).all()
    return np.bincount(schedule.rank[at], schedule.size[at].astype(float), schedule.ranks).astype(int)


def makespan(schedule, settings=IDEAL):
    """Return when the last rank ends, by LogGOPS."""
    return float(run_loggops(schedule, settings).finish.max())
