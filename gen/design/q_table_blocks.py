"""Blocks of the table of Q-adaptive: the whole, and what decides its period."""

from functools import partial

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import Component, In, Out

from hopforge.gen.design.blocks import Block, Registered
from hopforge.hw.agents.q_table import QTable, least_of
from hopforge.model.config import Config
from hopforge.model.router.q_table import QTableParams

__all__ = ["q_table_block", "q_table_blocks"]

_RECIPES = ("lut-buffered", "lut-fast")


class RowMinimum(Component):
    """Least estimate of a row and its column as one bit of a word; combinational.

    Parameters
    ----------
    columns, value_bits : int
        Estimates of a row, and bits of one.
    """

    row: Signal
    least: Signal
    chosen: Signal

    def __init__(self, *, columns: int, value_bits: int) -> None:
        self.columns, self.value_bits = columns, value_bits
        super().__init__({"row": In(columns * value_bits), "least": Out(value_bits), "chosen": Out(columns)})

    def elaborate(self, platform: object) -> Module:
        """Build the tree."""
        m = Module()
        found = least_of(m, [self.row.word_select(n, self.value_bits) for n in range(self.columns)], "least")
        m.d.comb += [self.least.eq(found.value), self.chosen.eq(Cat(found.chosen))]
        return m


def q_table_block(params: QTableParams) -> Block:
    """Whole table; its memories are outside."""
    p = params
    return Block(
        name="q_table",
        what=f"table of Q-adaptive, {p.rows} rows of {p.columns} estimates of {p.value_bits} bits, memories outside",
        clocked=True, recipes=_RECIPES, efforts=False, clock_gates=True,
        build=partial(QTable, params=p),
    )  # fmt: skip


def q_table_blocks(config: Config) -> dict[str, Block]:
    """Return the table of a configuration, with two memories and with one, and the minimum of a row.

    Raises
    ------
    UserError
        A configuration that has no such table.
    """
    params = QTableParams.from_config(config)
    block = Block(
        name="q_minimum", what="least of a row, between registers", clocked=True, recipes=_RECIPES, efforts=False,
        build=lambda: Registered(RowMinimum(columns=params.columns, value_bits=params.value_bits)),
    )  # fmt: skip
    return {"q_table": q_table_block(params), "q_minimum": block}
