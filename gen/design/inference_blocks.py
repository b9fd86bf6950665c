"""Blocks of the inference of a DQN agent: a fixed table of networks and numbers of multipliers."""

from functools import partial

from hopforge.gen.design.blocks import Block
from hopforge.hw.agents.dqn_inference import DqnInference
from hopforge.model.dqn.int8_table import LEAST_ACTIVATION_BITS

__all__ = ["inference_blocks"]

_RECIPES = ("lut-buffered", "lut-fast")
_BLOCKS = {
    "dqn32_4": ((13, 32, 32, 32, 4), 4, 8),
    "dqn32_4a9": ((13, 32, 32, 32, 4), 4, 9),
    "dqn32_4a12": ((13, 32, 32, 32, 4), 4, 12),
    "dqn32_32": ((13, 32, 32, 32, 4), 32, 8),
    "dqn256_16": ((13, 256, 256, 256, 4), 16, 8),
    "dqn256_16a12": ((13, 256, 256, 256, 4), 16, 12),
    "dqn256_64": ((13, 256, 256, 256, 4), 64, 8),
}
"""Name → widths, multipliers, bits of activations; beyond 32 multipliers a recipe takes long."""
_LARGEST_BY_DEFAULT = 32


def inference_blocks() -> dict[str, Block]:
    """Return inference blocks of a small network and of the paper's; weights, biases, activations are outside.

    ``dqnW_L``: hidden layers of W, L multipliers; ``dqnW_LaB``: activations of B bits.
    """
    return {
        name: Block(
            name=name,
            what=f"inference, {' > '.join(map(str, widths))}, {lanes} multipliers, activations of {bits} bits",
            build=partial(DqnInference, widths=widths, lanes=lanes, activation_bits=bits), clocked=True,
            recipes=_RECIPES, efforts=False, clock_gates=True,
            on_request=lanes > _LARGEST_BY_DEFAULT or bits > LEAST_ACTIVATION_BITS,
        )
        for name, (widths, lanes, bits) in _BLOCKS.items()
    }  # fmt: skip
