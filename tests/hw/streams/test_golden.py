"""Both sides of the AXI-Stream adapter against the golden model: every output in every cycle."""

import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from hopforge.hw.streams.receiver import StreamReceiver
from hopforge.hw.streams.sender import StreamSender
from hopforge.model.router.params import Route, RouterParams
from hopforge.model.router.stream_golden import Beat, Flit, StreamReceiverGolden, StreamSenderGolden, packet_flits
from hopforge.model.router.stream_params import StreamParams

_BASE: dict[str, Any] = {"ports": 2, "vcs": 2, "buffer_flits": 3, "width_bits": 32, "address_bits": 6, "tag_bits": 4,
                         "routes": (Route(1), Route(2))}  # fmt: skip
SHAPES = {
    "plain": ({}, 4, 3),
    "one byte": ({"width_bits": 8, "address_bits": 2, "tag_bits": 0}, 3, 3),
    "odd width": ({"width_bits": 24, "vcs": 3, "tag_bits": 2, "buffer_flits": 5}, 5, 5),
    "one VC, one flit": ({"vcs": 1, "buffer_flits": 1}, 1, 1),
    "vct": ({"switching": "vct", "buffer_flits": 6, "length_bits": 3, "neighbour_flits": (6, 7)}, 5, 3),
    "release by credits": ({"vc_release": "credits"}, 3, 2),
}
"""Changes of the router, longest packet, VCs at injection."""


def shape(name: str) -> StreamParams:
    changes, beats, mask = SHAPES[name]
    return StreamParams(router=RouterParams(**_BASE | changes), port=1, own=1, beats=beats, vcs_at_injection=mask)


def random_packet(rng: random.Random, params: StreamParams) -> tuple[list[Beat], str]:
    """Return the beats of a packet and what is bad about it."""
    size = params.bytes
    count = rng.choice([1, params.beats, rng.randint(1, params.beats), params.beats + rng.randint(1, 3)])
    dest, user = (rng.getrandbits(bits) if bits else 0 for bits in (params.router.address_bits, params.user_bits))
    ends = rng.randint(1, size)
    keeps = [(1 << size) - 1] * (count - 1) + [(1 << ends) - 1]
    dests = [dest] * count
    faults = ["long"] if count > params.beats else []
    where = rng.randrange(count)
    if rng.random() < 0.15:
        keeps[where] = rng.choice([0, *([1 << size - 1] if size > 1 else [])])
        faults = faults if faults and where >= params.beats else ["malformed"]
    elif rng.random() < 0.1 and where:
        dests[where] ^= 1
        faults = faults if faults and where >= params.beats else ["malformed"]
    beats = [
        Beat(rng.getrandbits(8 * size), keep, number == count - 1, at, user)
        for number, (keep, at) in enumerate(zip(keeps, dests, strict=True))
    ]
    return beats, faults[0] if faults else ""


def simulate(dut: Any, bench: Any) -> None:
    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.thinned(2)
def test_sender(name: str) -> None:
    params, rng = shape(name), random.Random(name)
    dut, golden = StreamSender(params=params), StreamSenderGolden(params)
    coming: list[Beat] = []
    expected: list[list[Beat]] = []
    found: list[Flit] = []
    faults = {"": 0, "long": 0, "malformed": 0}
    seen = {"long": 0, "malformed": 0}

    async def bench(ctx: Any) -> None:
        owed: list[int] = []
        for cycle in range(1600):
            busy = cycle < 1200
            if not coming and busy:
                beats, bad = random_packet(rng, params)
                coming.extend(beats)
                faults[bad] += 1
                expected.extend([] if bad else [beats])
            rate = 0.9 if cycle // 200 % 2 else 0.3
            beat = coming[0] if coming and rng.random() < 0.8 else None
            credit = rng.choice(owed) if owed and rng.random() < rate else None
            s = dut.stream
            ctx.set(s.tvalid, beat is not None)
            ctx.set(dut.own, params.own)
            if beat is not None:
                for port, value in ((s.tdata, beat.data), (s.tkeep, beat.keep), (s.tlast, beat.last),
                                    (s.tdest, beat.dest), (s.tuser, beat.user)):  # fmt: skip
                    ctx.set(port, value)
            ctx.set(dut.credit_valid, credit is not None)
            ctx.set(dut.credit_vc, credit or 0)
            if credit is not None:
                owed.remove(credit)
            assert ctx.get(s.tready) == golden.ready, cycle
            flit = None
            if ctx.get(dut.flit_valid):
                flit = Flit(ctx.get(dut.flit.kind), ctx.get(dut.flit.vc), ctx.get(dut.flit.data))
                owed.append(flit.vc)
                found.append(flit)
            assert flit == golden.flit, cycle
            if beat is not None and golden.ready:
                coming.pop(0)
            golden.step(beat, credit)
            drops = ctx.get(dut.long), ctx.get(dut.malformed)
            assert drops == (golden.long, golden.malformed), cycle
            seen["long"], seen["malformed"] = seen["long"] + drops[0], seen["malformed"] + drops[1]
            await ctx.tick()

    simulate(dut, bench)
    assert not coming and min(faults.values()) > 5
    assert seen == {"long": faults["long"], "malformed": faults["malformed"]}
    heads = [number for number, flit in enumerate(found) if flit.kind == 1]
    packets = [found[a:b] for a, b in zip(heads, [*heads[1:], len(found)], strict=True)]
    assert packets == [packet_flits(params, beats, flits[0].vc) for beats, flits in zip(expected, packets, strict=True)]
    if name != "release by credits":
        assert {flit.vc for flit in found} == {vc for vc in range(8) if params.vcs_at_injection >> vc & 1}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.thinned(2)
def test_receiver(name: str) -> None:
    params, rng = shape(name), random.Random(name)
    vcs = params.router.vcs
    dut, golden = StreamReceiver(params=params), StreamReceiverGolden(params)
    credits = [params.receive_flits] * vcs
    waiting: list[list[Flit]] = [[] for _ in range(vcs)]
    expected: list[list[Beat]] = []
    found: list[list[Beat]] = [[]]
    strays = stray_count = 0

    async def bench(ctx: Any) -> None:
        nonlocal strays, stray_count
        for cycle in range(1800):
            for vc in range(vcs):
                if not waiting[vc] and cycle < 1200:
                    beats, bad = random_packet(rng, params)
                    if bad:
                        continue
                    waiting[vc] = packet_flits(params, beats, vc)
                    expected.append([beat._replace(source=params.own) for beat in beats])
                    if rng.random() < 0.1:
                        at, kind = rng.choice([(0, 3), (0, 0), (1, 3), (1, 1)])
                        waiting[vc].insert(at, Flit(kind, vc, rng.getrandbits(params.router.width_bits)))
                        stray_count += 1
            able = [vc for vc in range(vcs) if waiting[vc] and credits[vc]]
            flit = waiting[vc := rng.choice(able)].pop(0) if able and rng.random() < 0.9 else None
            if flit is not None:
                credits[vc] -= 1
                for port, value in ((dut.flit.kind, flit.kind), (dut.flit.vc, flit.vc), (dut.flit.data, flit.data)):
                    ctx.set(port, value)
            ready = rng.random() < (0.9 if cycle // 200 % 2 else 0.4)
            ctx.set(dut.flit_valid, flit is not None)
            ctx.set(dut.stream.tready, ready)
            s, beat = dut.stream, None
            if ctx.get(s.tvalid):
                beat = Beat(ctx.get(s.tdata), ctx.get(s.tkeep), bool(ctx.get(s.tlast)), ctx.get(s.tdest),
                            ctx.get(s.tuser), ctx.get(s.tid))  # fmt: skip
            assert beat == golden.beat, cycle
            credit = ctx.get(dut.credit_vc) if ctx.get(dut.credit_valid) else None
            assert credit == golden.credit, cycle
            if credit is not None:
                credits[credit] += 1
            if beat is not None and ready:
                found[-1].append(beat)
                if beat.last:
                    found.append([])
            golden.step(flit, ready)
            malformed = ctx.get(dut.malformed)
            assert malformed == golden.malformed, cycle
            strays += malformed
            await ctx.tick()

    simulate(dut, bench)
    assert found.pop() == [] and len(found) > 50
    assert sorted(found) == sorted(expected) and strays == stray_count > 5
    assert credits == [params.receive_flits] * vcs


@pytest.mark.parametrize(
    ("changes", "router", "message"),
    [
        ({"beats": 0}, {}, "stream_beats must be in 1 to 1024, not 0"),
        ({"port": 2}, {}, "port must be below 2, not 2"),
        ({"own": 64}, {}, "own must be below 2\\*\\*address_bits=64, not 64"),
        ({"vcs_at_injection": 4}, {}, "vcs_at_injection must be in 1 to 3, not 4"),
        ({}, {"width_bits": 33}, "width_bits must be a multiple of 8 for AXI-Stream, not 33"),
        ({}, {"tag_bits": 1}, "tag_bits must be at least 2 for AXI-Stream of 4 bytes, not 1"),
        ({"beats": 3}, {"switching": "vct"},
         "stream_beats must be at most buffer_flits=3 - 1 with switching=vct, not 3"),
        ({"beats": 3}, {"switching": "vct", "buffer_flits": 4, "neighbour_flits": (4, 2)},
         "stream_beats must be at most neighbour_flits\\[1\\]=2 - 1 with switching=vct, not 3"),
        ({"beats": 7}, {"switching": "vct", "length_bits": 3, "buffer_flits": 8},
         "stream_beats must be at most 2\\*\\*length_bits=8 - 2 with switching=vct, not 7"),
    ],
)  # fmt: skip
def test_bad_parameters(changes: dict[str, Any], router: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StreamParams(router=RouterParams(**_BASE | router), **{"port": 1, "beats": 2, **changes})
