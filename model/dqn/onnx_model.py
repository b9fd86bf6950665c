"""The network of an agent as an ONNX model: observations in, Q values out."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.dqn.shape import NetworkShape
from hopforge.model.errors import UserError
from hopforge.model.output.destination import one_file
from hopforge.model.requirements import pip_command

__all__ = ["onnx_model", "write_onnx"]

OPSET = 17
FORMAT_VERSION = 8

#: node, inputs, output
_NODES = (
    ("Gemm", ("observation", "W1", "b1"), "z1"), ("Tanh", ("z1",), "h1"),
    ("Gemm", ("h1", "W2", "b2"), "z2"), ("Tanh", ("z2",), "h2"),
    ("Gemm", ("h2", "WA1", "bA1"), "zA"), ("Relu", ("zA",), "hA"), ("Gemm", ("hA", "WA2", "bA2"), "advantage"),
    ("Gemm", ("h2", "WV1", "bV1"), "zV"), ("Relu", ("zV",), "hV"), ("Gemm", ("hV", "WV2", "bV2"), "value"),
    ("ReduceMean", ("advantage",), "mean"), ("Sub", ("advantage", "mean"), "above_mean"),
    ("Add", ("value", "above_mean"), "q"),
)  # fmt: skip


def onnx_model(shape: NetworkShape, weights: NDArray[Any]) -> Any:
    """Return the model of one agent; float32.

    Raises
    ------
    UserError
        The package onnx is not installed.
    """
    try:
        from onnx import TensorProto, checker, helper, numpy_helper  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise UserError(f"ONNX needs the package onnx: {pip_command('onnx')}") from error
    nodes = [helper.make_node(kind, inputs, [output]) for kind, inputs, output in _NODES]
    for node in nodes:
        if node.op_type == "ReduceMean":
            node.attribute.append(helper.make_attribute("axes", [1]))
    real = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "agent",
        [helper.make_tensor_value_info("observation", real, ["batch", shape.inputs])],
        [helper.make_tensor_value_info("q", real, ["batch", shape.actions])],
        [numpy_helper.from_array(part.astype(np.float32), name) for name, part in shape.split(weights).items()],
    )
    model = helper.make_model(
        graph, producer_name="hopforge", opset_imports=[helper.make_opsetid("", OPSET)], ir_version=FORMAT_VERSION
    )
    checker.check_model(model)
    return model


def write_onnx(path: Path, shape: NetworkShape, weights: NDArray[Any]) -> None:
    """Write the model of one agent; errors as `onnx_model` and `output.destination.one_file`."""
    content = onnx_model(shape, weights).SerializeToString(deterministic=True)
    with one_file(path, "binary data") as scratch:
        scratch.write_bytes(content)
