"""`cghash export onnx`: a model for any language."""

from __future__ import annotations

import click

from .._data import load_model, say, truncated
from .._options import model_path, quiet_option


@click.command()
@click.argument("model")
@click.option("-o", "--output", required=True, metavar="FILE", callback=model_path, help="The ONNX file to write.")
@click.option(
    "--dtype", type=click.Choice(["float32", "float64"]), default="float32", show_default=True, help="Of the items."
)
@click.option("-b", "--n-bits", type=int, help="Take only the first bits.  [default: all]")
@quiet_option
def onnx(model: str, output: str, dtype: str, n_bits: int | None, quiet: bool) -> None:
    """Write MODEL, of linear or RBF functions, as an ONNX graph.

    Its input 'items' (n, d) are floats, its output 'codes' (n, bytes) is what 'cghash encode' writes. Of RBF functions
    a second output, 'certain' (n), says whose codes are proven to be the same.

    \b
    Examples:
      cghash export onnx model.cghash -o model.onnx
      cghash export onnx model.cghash --dtype float64 --n-bits 16 -o model.onnx
    """
    from ...stores.onnx import to_onnx

    hasher = load_model(model)
    if n_bits is not None:
        hasher = truncated(hasher, n_bits)
    to_onnx(hasher, output, dtype=dtype)
    say(f"a graph from {hasher.n_features_in_} {dtype} to {hasher.n_bits_} bits, wrote {output}", quiet)
