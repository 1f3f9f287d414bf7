"""Writing ONNX graphs: each call adds a node and gives the name of its output."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import Array


class Graph:
    """A graph under construction."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._count = 0

    def __call__(self, operation: str, *inputs: str, **attributes: Any) -> str:
        """A node with one output."""
        return self._node(operation, inputs, 1, attributes)[0]

    def constant(self, array: Array) -> str:
        """The name of an array that belongs to the graph."""
        name = self._name("constant")
        self._constants.append(self._onnx.numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def take(self, name: str, dtype: Any, shape: list[int | None]) -> str:
        """An input."""
        self._inputs.append(self._value(name, dtype, shape))
        return name

    def give(self, inside: str, name: str, dtype: Any, shape: list[int | None]) -> None:
        """An output."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [inside], [name]))
        self._outputs.append(self._value(name, dtype, shape))

    def model(self, name: str, opset: int, ir_version: int, metadata: dict[str, str]) -> Any:
        """The whole, checked."""
        helper = self._onnx.helper
        graph = helper.make_graph(self._nodes, name, self._inputs, self._outputs, self._constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)
        made.producer_name = "cghash"
        helper.set_model_props(made, metadata)
        self._onnx.checker.check_model(made)
        return made

    # What is needed more than once

    def cast(self, value: str, dtype: Any) -> str:
        return self("Cast", value, to=self._type(dtype))

    def add(self, a: str, b: str) -> str:
        return self("Add", a, b)

    def all(self, conditions: str) -> str:
        """Whether all conditions (n, m) of a row hold (n,)."""
        numbers = self.cast(conditions, np.int32)
        return self.cast(self("ReduceMin", numbers, self.constant(np.array([1])), keepdims=0), np.bool_)

    def parts(self, value: str, count: int, axis: int) -> list[str]:
        """Equal parts along an axis."""
        return self._node("Split", (value,), count, {"axis": axis, "num_outputs": count})

    def blocks_of_8(self, rows: str, width: int, dtype: Any) -> str:
        """Rows (n, width), filled up with 0, as (n, ⌈width / 8⌉, 8)."""
        n_blocks = -(-width // 8)
        if width % 8:
            pads = self.constant(np.array([0, 0, 0, 8 * n_blocks - width]))
            rows = self("Pad", rows, pads, self.constant(np.array(0, dtype=dtype)))
        return self("Reshape", rows, self.constant(np.array([-1, n_blocks, 8])))

    def running_sum(self, blocks: str, n_blocks: int) -> str:
        """The sum over axis 1 of (p, n_blocks, 8), one block after the other."""
        first = self("Gather", blocks, self.constant(np.array(0)), axis=1)
        if n_blocks == 1:
            return first
        ends = [self.constant(np.array([number])) for number in (1, n_blocks, 1)]  # from, to, axis
        rest = self("Slice", blocks, *ends)
        helper = self._onnx.helper
        names = "total", "block", "more"
        shapes = [self._value(name, np.float64, [None, 8]) for name in names]
        body = helper.make_graph([helper.make_node("Add", names[:2], names[2:])], "one_more", shapes[:2], shapes[2:])
        return self("Scan", first, rest, body=body, num_scan_inputs=1, scan_input_axes=[1])

    # Within

    def _node(self, operation: str, inputs: tuple[str, ...], n_outputs: int, attributes: dict[str, Any]) -> list[str]:
        outputs = [self._name(operation) for _ in range(n_outputs)]
        self._nodes.append(self._onnx.helper.make_node(operation, list(inputs), outputs, **attributes))
        return outputs

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}_{self._count}"

    def _type(self, dtype: Any) -> int:
        return int(self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def _value(self, name: str, dtype: Any, shape: list[int | None]) -> Any:
        return self._onnx.helper.make_tensor_value_info(name, self._type(dtype), shape)
