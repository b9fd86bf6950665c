"""QTable equals its golden model in every cycle, whatever its size and however close updates follow each other."""

from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module, Mux, Signal
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st

import hopforge.hw.agents.q_table as module
from hopforge.hw.agents.q_table import times
from hopforge.hw.parts.sram import Sram
from hopforge.model.router.q_table import QTableParams
from hopforge.sim.benches.q_table import QTableTraffic, q_table_bench
from hopforge.sim.drive.replay import replay_amaranth


@st.composite
def tables(draw: Any) -> QTableParams:
    bits = draw(st.integers(4, 18))
    estimates = st.integers(0, (1 << bits) - 2)
    share = st.integers(0, 1024)
    return QTableParams(
        groups=draw(st.integers(3, 9)), hosts=draw(st.integers(1, 5)), local_ports=draw(st.integers(1, 5)),
        global_ports=draw(st.integers(1, 3)), value_bits=bits, near=draw(estimates), far=draw(estimates),
        alpha=draw(share), beta=draw(share), q_thld1=draw(share), q_thld2=draw(share), dither=draw(st.booleans()),
        shared_read=draw(st.booleans()),
    )  # fmt: skip


@settings(max_examples=6, deadline=None)
@given(tables(), st.integers(0, 1 << 20))
def test_equals_golden(params: QTableParams, seed: int) -> None:
    bench = q_table_bench(params, QTableTraffic(cycles=250, seed=seed))
    result = replay_amaranth(bench.component, bench.replay)
    assert result.first is None, str(result.first)
    assert result.cycles == params.rows + 250


class _Careless(Sram):
    """A memory that gives nonsense when a word is read while it is written."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.inner = inner = Sram(depth=self.depth, width_bits=self.width_bits, bit_write=True)
        met = Signal(self.width_bits)
        m.d.comb += [
            inner.r_en.eq(self.r_en), inner.r_addr.eq(self.r_addr), inner.w_en.eq(self.w_en),
            inner.w_addr.eq(self.w_addr), inner.w_data.eq(self.w_data), self.r_data.eq(inner.r_data ^ met),
        ]  # fmt: skip
        with m.If(self.r_en):
            m.d.sync += met.eq(Mux(self.r_addr == self.w_addr, self.w_en, 0))
        return m


@pytest.mark.parametrize("shared", [False, True])
def test_reading_what_is_being_written_does_not_matter(shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Sram", _Careless)
    params = QTableParams(groups=3, hosts=1, local_ports=2, global_ports=1, value_bits=9, shared_read=shared)
    bench = q_table_bench(params, QTableTraffic(cycles=600, seed=5, places=1))
    assert replay_amaranth(bench.component, bench.replay).first is None


def test_the_bench_shows_every_kind_of_answer() -> None:
    params = QTableParams(groups=9, hosts=2, local_ports=3, global_ports=2, value_bits=12)
    replay = q_table_bench(params, QTableTraffic(cycles=2000, seed=1)).replay
    for output, column in zip(replay.outputs, replay.expected.T, strict=True):
        assert len(np.unique(column)) > 1, output
    columns = dict(zip((output.name for output in replay.outputs), replay.expected.T, strict=True))
    answers = columns["resp_valid"] == 1
    assert 0.1 < columns["resp_detour"][answers].mean() < 0.9
    driven = dict(zip(replay.inputs, replay.driven.T, strict=True))
    told = driven["upd_valid"] == 1
    places = np.stack([driven[f"upd_{name}"] for name in ("group", "host", "column")])
    for apart in (1, 2, 3):  # updates that need the result of one still on its way
        same = (places[:, apart:] == places[:, :-apart]).all(axis=0) & told[apart:] & told[:-apart]
        assert same.sum() > 50, apart


@pytest.mark.parametrize("constant", [0, 1, 2, 3, 7, 41, 205, 358, 1023, 1024])
def test_products_by_shifts(constant: int) -> None:
    value = Signal(6)
    m = Module()
    product = Signal(18)
    m.d.comb += product.eq(times(value, constant))

    async def bench(ctx: Any) -> None:
        for word in range(64):
            ctx.set(value, word)
            assert ctx.get(product) == word * constant

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
