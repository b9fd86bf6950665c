"""Blocks of the inference of a DQN agent: a fixed table of networks and numbers of multipliers."""

from functools import partial

from hopforge.gen.synth_blocks import Block
from hopforge.hw.dqn_inference import DqnInference

__all__ = ["inference_blocks"]

_RECIPES = ("lut-buffered", "lut-fast")
_BLOCKS = {
    "dqn32_4": ((13, 32, 32, 32, 4), 4),
    "dqn32_32": ((13, 32, 32, 32, 4), 32),
    "dqn256_16": ((13, 256, 256, 256, 4), 16),
    "dqn256_64": ((13, 256, 256, 256, 4), 64),
}
"""Name → widths and multipliers; beyond 32 of these a recipe takes long."""
_LARGEST_BY_DEFAULT = 32


def inference_blocks() -> dict[str, Block]:
    """Return inference blocks of a small network and of the paper's; weights, biases, activations are outside.

    ``dqnW_L``: hidden layers of W, L multipliers.
    """
    return {
        name: Block(
            name=name, what=f"inference, {' > '.join(map(str, widths))}, {lanes} multipliers, memories outside",
            build=partial(DqnInference, widths=widths, lanes=lanes), clocked=True, recipes=_RECIPES, efforts=False,
            clock_gates=True, on_request=lanes > _LARGEST_BY_DEFAULT,
        )
        for name, (widths, lanes) in _BLOCKS.items()
    }  # fmt: skip
