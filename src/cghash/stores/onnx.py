"""A model as an ONNX graph: floats in, packed codes out, so that any language encodes.

A bit is [v·x + b > 0], and programs that add in different orders may disagree where v·x + b is within rounding of 0. So
the graph multiplies as fast as it can, in double precision, and computes those few values again in the very order of
our kernel (native/kernels/project.hpp): eight running sums, feature f in sum f % 8, then
((s₀ + s₁) + (s₂ + s₃)) + ((s₄ + s₅) + (s₆ + s₇)). Values outside the bound of rounding errors have the same sign in any
order.

- Linear functions: the codes are those of `encode` on dense items, byte for byte, whatever the items.
- RBF functions: exp and the distances before it are rounded otherwise by each library, which `encode` rounds to single
  precision. The graph follows how far they may be off. The output `certain` says of each item that its code is proven
  to be that of `encode`; it is false about as rarely as a number falls within 10⁻¹⁴ of a border.

Both are said of the native kernels; their NumPy twins add as BLAS does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import Array
from .._validation import check_choice
from ..exceptions import FormatError, InvalidInputError
from ..learning.families.linear import LinearFunctions
from ..learning.families.rbf import RBFFunctions
from ..storage import write_atomically
from .base import Path, require
from .origin import Origin, origin_of, read_header

OPSET, IR_VERSION = 18, 8  # such as onnxruntime has read since 2023
KEY = "cghash"

_ROUNDING = 2.0**-53  # of one operation
_TINY = 1e-300  # above what underflow takes away
_VANISHES = -760.0  # exp is 0 below

Value = str | Array | list[int] | float  # the name of an output, or what becomes a constant


def to_onnx(model: Any, path: Path | None = None, *, dtype: str = "float32") -> Any:
    """Write a fitted CGHash of linear or RBF functions as an ONNX model.

    Parameters
    ----------
    model : fitted CGHash with `hash_function` "linear", "rbf" or "rbf-kmeans"
    path : file, optional; where to write it
    dtype : {"float32", "float64"}, default="float32"
        Of the items that the graph takes.

    Returns
    -------
    graph : onnx.ModelProto. Input `items` (n, d), output `codes` (n, n_bytes) uint8, of RBF functions also `certain`
        (n,) bool. Its metadata `cghash` is JSON: bits, weights and fingerprint (`origin_of_onnx`).

    Examples
    --------
    >>> import onnxruntime
    >>> from sklearn.datasets import load_digits
    >>> from cghash import CGHash
    >>> X, y = load_digits(return_X_y=True)
    >>> X = X.astype(np.float32)
    >>> model = CGHash(16, random_state=0).fit(X[:300], y[:300])
    >>> session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    >>> bool((session.run(["codes"], {"items": X})[0] == model.encode(X)).all())
    True
    """
    onnx = require("onnx", "onnx")
    origin = origin_of(model)
    check_choice(dtype, ("float32", "float64"), "dtype")
    functions = getattr(model, "functions_", None)
    if not isinstance(functions, LinearFunctions | RBFFunctions):
        name = getattr(functions, "family", type(model).__name__)
        raise InvalidInputError(f"model must be a CGHash of linear or rbf functions for ONNX, got {name}")
    graph = Graph(onnx)
    given = graph.take("items", dtype, [None, int(model.n_features_in_)])
    items = given if dtype == "float64" else graph.cast(given, np.float64)
    if isinstance(functions, LinearFunctions):
        values, _ = _projected(graph, items, functions.coef, functions.intercept)
    else:
        values, certain = _radial(graph, items, functions)
        graph.give(certain, "certain", np.bool_, [None])
    graph.give(_packed(graph, values, origin.n_bits), "codes", np.uint8, [None, origin.n_bytes])
    made = graph.model(functions.family, OPSET, IR_VERSION, {KEY: _about(model, origin, dtype)})
    if path is not None:
        write_atomically(path, made.SerializeToString())
    return made


def origin_of_onnx(model: Any) -> Origin:
    """The origin of the codes that an ONNX model gives: a file, or an onnx.ModelProto.

    FormatError when it is not one that `to_onnx` wrote.
    """
    if not hasattr(model, "metadata_props"):
        onnx = require("onnx", "onnx")
        try:
            model = onnx.load(model, load_external_data=False)
        except OSError:
            raise
        except Exception as error:  # protobuf's own, which has no public name
            raise FormatError(f"{model} is not an ONNX model, or it is damaged: {error}") from error
    about = next((entry.value for entry in model.metadata_props if entry.key == KEY), "")
    return read_header(about, "the ONNX model")[0]


def _about(model: Any, origin: Origin, dtype: str) -> str:
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    return origin.header(family=model.functions_.family, dtype=dtype, feature_names=names)


def _projected(graph: Graph, x: str, coef: Array, intercept: Array) -> tuple[str, str]:
    """x·coefᵀ + intercept (n, ℓ), of the same sign as our kernel's; and a bound on the rounding of any order."""
    fast = graph.add(graph("MatMul", x, coef.T), intercept)
    d = coef.shape[1]
    with np.errstate(over="ignore"):
        length = np.abs(coef).sum(axis=1)  # Σ|x_f·v_f| ≤ max|x|·Σ|v_f|
    largest = graph("ReduceMax", graph("Abs", x), [1], keepdims=1)  # (n, 1)
    size = graph("Mul", largest, 4 * length)  # (n, ℓ), infinite where a sum might be
    bound = graph.add(graph("Mul", size, (d + 16) * _ROUNDING), _TINY)
    doubtful = graph("Not", graph("Greater", graph("Abs", fast), bound))  # also where a value is not a number
    places = graph("NonZero", doubtful)  # (2, p)
    row, column = (graph("Gather", places, i, axis=0) for i in (0, 1))
    products = graph("Mul", graph("Gather", x, row), graph("Gather", coef, column))  # (p, d)
    slow = graph.add(_summed(graph, products, d), graph("Gather", intercept, column))
    return graph("ScatterND", fast, graph("Transpose", places, perm=[1, 0]), slow), bound


def _summed(graph: Graph, products: str, d: int) -> str:
    """Sums (p,) of products (p, d), in our kernel's order."""
    blocks = graph.blocks_of_8(products, d, np.float64)  # (p, ⌈d/8⌉, 8)
    lanes = graph.running_sum(blocks, -(-d // 8))  # (p, 8)
    s = graph.parts(lanes, 8, axis=1)  # 8 of (p, 1)
    left = graph.add(graph.add(s[0], s[1]), graph.add(s[2], s[3]))
    right = graph.add(graph.add(s[4], s[5]), graph.add(s[6], s[7]))
    return graph("Squeeze", graph.add(left, right), [1])


def _packed(graph: Graph, values: str, n_bits: int) -> str:
    """Codes (n, n_bytes) of values (n, n_bits): bit j is [value_j > 0]."""
    positive = graph.cast(graph("Greater", values, 0.0), np.int32)
    bytes_ = graph("Mul", graph.blocks_of_8(positive, n_bits, np.int32), 1 << np.arange(8, dtype=np.int32))
    return graph.cast(graph("ReduceSum", bytes_, [2], keepdims=0), np.uint8)


def _radial(graph: Graph, x: str, functions: RBFFunctions) -> tuple[str, str]:
    """Values (n, ℓ) of RBF functions, and of which items all bits are certain."""
    nearby, low, high, holds = _bumps(graph, x, functions)
    values, bound = _projected(graph, nearby, functions.coef, functions.intercept)
    width = graph("Sub", high, low)  # (n, m), 0 wherever no border of single precision is near
    slack = graph("MatMul", width, 2 * np.abs(functions.coef).T)  # (n, ℓ)
    same = graph("Equal", slack, 0.0)
    clear = graph("Greater", graph("Abs", values), graph.add(slack, bound))
    every = graph.all(graph("Or", same, clear))
    return values, graph("And", every, graph.all(holds))


def _bumps(graph: Graph, x: str, functions: RBFFunctions) -> tuple[str, str, str, str]:
    """exp(−γ‖x − landmark‖²) − mean (n, m) in single precision, its least and largest, and where these hold."""
    landmarks, gamma = functions.landmarks, float(functions.gamma[0])
    centre = landmarks.mean(axis=0)  # as in families/rbf.py
    B = landmarks - centre
    A = graph("Sub", x, centre)
    aa = graph("ReduceSum", graph("Mul", A, A), [1], keepdims=1)
    lengths = graph.add(aa, (B * B).sum(axis=1))  # (n, m)
    square = graph("Sub", lengths, graph("MatMul", A, 2.0 * B.T))
    exponent = graph("Mul", graph("Max", square, 0.0), -gamma)
    bump = graph("Exp", exponent)
    # how far the exponent may be off: by sums of the distance, in any order, and by its own rounding and that of exp
    sums = graph("Mul", lengths, 8 * (landmarks.shape[1] + 16) * _ROUNDING * gamma)
    own = graph("Mul", graph("Sub", 8.0, exponent), 8 * _ROUNDING)
    off = graph.add(sums, own)
    small = graph("Less", off, 0.5)  # then exp(±off) is within 1 ± 2·off
    gone = graph("Less", graph.add(exponent, off), _VANISHES)
    spread = graph("Mul", graph("Mul", bump, off), 2.0)
    spread = graph.add(spread, _TINY)
    sides = bump, graph("Sub", bump, spread), graph.add(bump, spread)
    mean = graph.constant(functions.mean)
    single = [graph.cast(graph("Sub", side, mean), np.float32) for side in sides]
    nearby, low, high = (graph.cast(side, np.float64) for side in single)
    return nearby, low, high, graph("Or", small, gone)


class Graph:
    """An ONNX graph under construction: each call adds a node and gives the name of its output."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._count = 0

    def __call__(self, operation: str, *inputs: Value, **attributes: Any) -> str:
        """A node with one output; numbers and arrays among its inputs become constants."""
        return self._node(operation, inputs, 1, attributes)[0]

    def constant(self, array: Any) -> str:
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

    def add(self, a: Value, b: Value) -> str:
        return self("Add", a, b)

    def all(self, conditions: str) -> str:
        """Whether all conditions (n, m) of a row hold (n,)."""
        numbers = self.cast(conditions, np.int32)
        return self.cast(self("ReduceMin", numbers, [1], keepdims=0), np.bool_)

    def parts(self, value: str, count: int, axis: int) -> list[str]:
        """Equal parts along an axis."""
        return self._node("Split", (value,), count, {"axis": axis, "num_outputs": count})

    def blocks_of_8(self, rows: str, width: int, dtype: Any) -> str:
        """Rows (n, width), filled up with 0, as (n, ⌈width / 8⌉, 8)."""
        n_blocks = -(-width // 8)
        if width % 8:
            rows = self("Pad", rows, [0, 0, 0, 8 * n_blocks - width], np.array(0, dtype=dtype))
        return self("Reshape", rows, [-1, n_blocks, 8])

    def running_sum(self, blocks: str, n_blocks: int) -> str:
        """The sum over axis 1 of (p, n_blocks, 8), one block after the other."""
        first = self("Gather", blocks, 0, axis=1)
        if n_blocks == 1:
            return first
        rest = self("Slice", blocks, [1], [n_blocks], [1])  # from, to, axis
        helper = self._onnx.helper
        names = "total", "block", "more"
        shapes = [self._value(name, np.float64, [None, 8]) for name in names]
        body = helper.make_graph([helper.make_node("Add", names[:2], names[2:])], "one_more", shapes[:2], shapes[2:])
        return self("Scan", first, rest, body=body, num_scan_inputs=1, scan_input_axes=[1])

    # Within

    def _node(self, operation: str, inputs: tuple[Value, ...], n_outputs: int, attributes: dict[str, Any]) -> list[str]:
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        outputs = [self._name(operation) for _ in range(n_outputs)]
        self._nodes.append(self._onnx.helper.make_node(operation, names, outputs, **attributes))
        return outputs

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}_{self._count}"

    def _type(self, dtype: Any) -> int:
        return int(self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def _value(self, name: str, dtype: Any, shape: list[int | None]) -> Any:
        return self._onnx.helper.make_tensor_value_info(name, self._type(dtype), shape)
