"""The blocks of the collective plane that can be synthesized."""

from functools import partial

from hopforge.gen.design.blocks import Block, Registered
from hopforge.gen.design.router_blocks import router_blocks
from hopforge.hw.collectives.unit import CollectiveUnit
from hopforge.hw.collectives.word_combiner import WordCombiner
from hopforge.model.config import Config
from hopforge.model.router.collective_plane import configured_plane

__all__ = ["collective_blocks"]

_RECIPES = ("lut-buffered", "lut-fast")


def collective_blocks(config: Config) -> dict[str, Block]:
    """Return the unit of the router with the most ports, its combiner, and the router beside it.

    Raises
    ------
    UserError
        Groups that do not fit the network, or a router that the hardware cannot be.
    """
    design = configured_plane(config)
    p, ports = design.params, max(design.ports)
    block = partial(Block, clocked=True, recipes=_RECIPES, efforts=False, clock_gates=True)
    size = f"{ports} ports, {p.groups} groups, {p.width_bits} bits, {p.buffer_flits} flits"
    found = [
        block(
            name="collective_unit", what=f"collective unit, {size}",
            build=lambda: CollectiveUnit(params=p, ports=ports),
        ),
        block(
            name="word_combiner", what=f"combines {ports} words of {p.width_bits} bits, between registers",
            build=lambda: Registered(WordCombiner(words=ports, width_bits=p.width_bits)),
        ),
        router_blocks(config)["router"],
    ]  # fmt: skip
    return {each.name: each for each in found}
