"""Bench of `hw.keys.node_reduction`: control registers and destinations, and the keys that the definition gives."""

import numpy as np
from amaranth.hdl import Module, Shape, Signal
from amaranth.lib.wiring import Component, In, Member, Out

from hopforge.hw.keys.node_reduction import NodeReduction
from hopforge.hw.keys.reduction_parameters import ReductionParameters
from hopforge.hw.keys.reduction_setup import ReductionSetup
from hopforge.model.lookup.csr import MODES
from hopforge.model.lookup.golden.keys import KeyFunctions
from hopforge.model.lookup.params import LookupParams
from hopforge.model.numbers.crc import crc_matrix
from hopforge.sim.drive.replay import Bench, Output, Replay, as_words

_HOLD_CYCLES = 8


class RegisteredReduction(Component):
    """Node reduction behind the active registers: ``key`` of ``dst`` with the control fields of the cycle before.

    One key per cycle; no back-pressure; after reset the mode is arbitrary.

    Parameters
    ----------
    parameters : ReductionParameters
        What is built.
    """

    dst: Signal
    key: Signal

    def __init__(self, parameters: ReductionParameters) -> None:
        self.parameters = parameters
        fields: dict[str, Member] = {}
        for name, field in parameters.shadow_layout:
            if name == "radix":
                fields |= {f"radix{index}": In(9) for index in range(parameters.most_digits)}
            else:
                fields[name] = In(Shape.cast(field.shape))
        super().__init__({**fields, "dst": In(parameters.address_bits), "key": Out(parameters.key_bits)})

    def elaborate(self, platform: object) -> Module:
        """Connect the setup, the registers and the reduction."""
        m = Module()
        m.submodules.setup = setup = ReductionSetup(self.parameters)
        m.submodules.reduction = reduction = NodeReduction(self.parameters)
        for name in self.parameters.shadow_layout.members:
            if name == "radix":
                for index in range(self.parameters.most_digits):
                    m.d.comb += setup.shadow.radix[index].eq(getattr(self, f"radix{index}"))
            else:
                m.d.comb += getattr(setup.shadow, name).eq(getattr(self, name))
        active = Signal(self.parameters.active_layout)
        m.d.sync += active.eq(setup.active)
        m.d.comb += [reduction.active.eq(active), reduction.dst.eq(self.dst), self.key.eq(reduction.key)]
        return m


def node_reduction_bench(params: LookupParams, count: int, rng: np.random.Generator) -> Bench:
    """Return a bench of the node reduction.

    Parameters
    ----------
    params : LookupParams
        The engine whose reduction it is.
    count : int
        Cycles; the control fields change every few of them.
    rng : numpy.random.Generator
        Draws fields (mostly possible ones) and destinations, half of them near the own address.
    """
    masks, constant = crc_matrix(params.crc, params.address_bits)
    component = RegisteredReduction(
        ReductionParameters(
            address_bits=params.address_bits, functions=params.functions, chunk_bits=params.chunk_bits,
            comparators=params.comparators, up_choices=("d_mod_k", "highest_mismatch"),
            max_members=params.max_members, crc_masks=masks, crc_constant=constant,
            expression=None if params.expression is None else params.expression.program,
        )
    )  # fmt: skip
    names = ["mode", "chunk_select", "digits", "level", "own", "members", "member_hash", "up_choice"]
    radices = [f"radix{index}" for index in range(params.radices)]
    keys = KeyFunctions(params)
    config = keys.config()
    values: dict[str, int] = {}
    driven, expected = [], []
    for cycle in range(count):
        dst = int(rng.integers(0, 1 << params.address_bits))
        if values and rng.random() < 0.5:  # one digit or so away
            dst = values["own"] ^ dst & 0xFF << int(rng.integers(0, params.address_bits))
            dst &= (1 << params.address_bits) - 1
        expected.append([keys.key(config, dst)])
        if cycle % _HOLD_CYCLES == 0:
            values = _fields(params, rng)
        driven.append([*(values[name] for name in (*names, *radices)), dst])
        config = keys.config(
            **{name: values[name] for name in names}, radices=tuple(values[name] for name in radices)
        )  # fmt: skip
    replay = Replay((*names, *radices, "dst"), (Output("key"),), as_words(driven), as_words(expected))
    return Bench("node_reduction", component, replay)


def _fields(params: LookupParams, rng: np.random.Generator) -> dict[str, int]:
    odd = rng.random() < 0.1
    return {
        "mode": int(rng.integers(0, 8)) if odd else MODES.index(rng.choice(params.functions)),
        "chunk_select": int(rng.integers(0, 8 if odd else len(params.chunk_bits))),
        "digits": int(rng.integers(0, 32 if odd else params.radices + 1)),
        "level": int(rng.integers(0, 32 if odd else 4)),
        "own": int(rng.integers(0, 1 << params.address_bits)),
        "members": int(rng.integers(0, 32 if odd else params.max_members + 1)),
        "member_hash": int(rng.integers(0, 2)),
        "up_choice": int(rng.integers(0, 2)),
        # as wide as the register of the map
        **{f"radix{i}": int(rng.integers(0, 1 << 1 + bits)) for i, bits in enumerate(params.comparator_bits)},
    }
