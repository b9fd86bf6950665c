"""A lookup engine of which one can see, besides its ports, which key it looks for and where."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import Component, In, Out

from hopforge.hw.lookup.deep import DeepLookup
from hopforge.hw.lookup.engine import lookup_engine
from hopforge.hw.lookup.shallow import Lookup
from hopforge.model.lookup.params import LookupParams

__all__ = ["OBSERVER", "ObservedEngine"]

OBSERVER = "observer"
"""Name of the submodule that is no part of the engine."""


class ObservedEngine(Component):
    """An engine with its ports and those of `Observer`.

    Parameters
    ----------
    params : LookupParams
        The engine, with a depth of 2 at least: a register must hold the operation.

    Raises
    ------
    ValueError
        Its depth is 1.
    """

    def __init__(self, *, params: LookupParams) -> None:
        if params.pipeline_depth < 2:
            raise ValueError(f"pipeline_depth must be at least 2 for an observed engine, not {params.pipeline_depth}")
        engine = lookup_engine(params=params)
        assert isinstance(engine, Lookup | DeepLookup)
        self.engine = engine
        self.observer = Observer(params.key_bits, engine.index_width)
        shown = {name: member for name, member in self.observer.signature.members.items() if member.flow is Out}
        super().__init__({**engine.signature.members, **shown})

    def elaborate(self, platform: object) -> Module:
        """Connect both."""
        m = Module()
        m.submodules.engine = engine = self.engine
        m.submodules[OBSERVER] = observer = self.observer
        op = engine.acting if isinstance(engine, DeepLookup) else engine.op
        m.d.comb += [
            observer.kinds.eq(Cat(op.lookup, op.fill, op.invalidate)),
            observer.fresh.eq(op.fresh),
            observer.key.eq(op.key),
            observer.index.eq(op.index),
        ]
        for inner in (engine, observer):
            for name, member in inner.signature.members.items():
                if name in self.signature.members:
                    inside, outside = getattr(inner, name), getattr(self, name)
                    m.d.comb += inside.eq(outside) if member.flow is In else outside.eq(inside)
        return m


class Observer(Component):
    """Shows an operation of an engine: whether it looks for a key, which one, and in which rows.

    What began before a flush is not shown: its key may be that of an earlier set-up. Combinational.

    Parameters
    ----------
    key_bits, index_bits : int
        Widths.
    """

    kinds: Signal
    fresh: Signal
    key: Signal
    index: Signal
    seen_valid: Signal
    seen_key: Signal
    seen_index: Signal

    def __init__(self, key_bits: int, index_bits: int) -> None:
        super().__init__(
            {
                "kinds": In(3),
                "fresh": In(1),
                "key": In(key_bits),
                "index": In(index_bits),
                "seen_valid": Out(1),
                "seen_key": Out(key_bits),
                "seen_index": Out(index_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Show what is given."""
        m = Module()
        m.d.comb += [
            self.seen_valid.eq(self.kinds.any() & self.fresh),
            self.seen_key.eq(self.key),
            self.seen_index.eq(self.index),
        ]
        return m
