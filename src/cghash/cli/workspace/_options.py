"""Options that the commands of workspaces share."""

from __future__ import annotations

import click

database_option = click.option(
    "--database",
    metavar="URL",
    help="Where the answers are: a path, or postgresql://…  [default: $CGHASH_DATABASE, else DIR/answers.sqlite]",
)
