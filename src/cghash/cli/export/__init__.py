"""`cghash export FORMAT`: models and codes for other systems."""

from __future__ import annotations

import click

from .._group import CommandLine

COMMANDS = {
    "onnx": ("cghash.cli.export.onnx:onnx", "A model as an ONNX graph: floats in, packed codes out."),
    "faiss": ("cghash.cli.export.codes:faiss", "Codes as an index of FAISS."),
    "parquet": ("cghash.cli.export.codes:parquet", "Codes as a Parquet file."),
    "duckdb": ("cghash.cli.export.codes:duckdb", "Codes as a table of a DuckDB file."),
    "postgres": ("cghash.cli.export.postgres:postgres", "Codes as a table of a PostgreSQL database."),
}


@click.group(cls=CommandLine, commands_at=COMMANDS, invoke_without_command=True)
@click.pass_context
def export(context: click.Context) -> None:
    """Hand a model, or codes with their weights and a fingerprint of the model, to the systems that you run.

    \b
    Examples:
      cghash export onnx model.cghash -o model.onnx
      cghash export faiss codes.npy --model model.cghash -o codes.faiss
      cghash export parquet --items items.npy --model model.cghash -o codes.parquet
      cghash export duckdb codes.npy --model model.cghash --table photos -o shop.duckdb
      cghash export postgres codes.npy --model model.cghash --database postgresql://ann@db/shop --table photos
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
