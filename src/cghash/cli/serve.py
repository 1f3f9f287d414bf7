"""`cghash serve`: the page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..exceptions import MissingDependencyError
from ._options import quiet_option
from ._output import say

if TYPE_CHECKING:
    from ..workspace import Workspace


@click.command()
@click.argument("folder", required=False, metavar="[DIR]", type=click.Path(file_okay=False))
@click.option(
    "--demo", is_flag=True, help="A workspace of handwritten digits, in a folder that is kept (DIR, or a cache)."
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on; any but loopback needs a token."
)
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option("--token", envvar="CGHASH_TOKEN", show_envvar=True, help="What callers must know, 16 characters or more.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="A further name to be called by; needs a token.")
@click.option(
    "--database", envvar="CGHASH_DATABASE", show_envvar=True, help="postgresql:// URL instead of DIR's SQLite."
)
@click.option(
    "--sentence-model",
    metavar="MODEL",
    help="The model that made sentence embeddings, a name or a folder: texts can then be searched for. What the "
    "workspace says of it is never loaded.",
)
@click.option("--jobs", "n_jobs", type=int, help="Threads of a search; all cores by default.")
@quiet_option
def serve(
    folder: str | None,
    demo: bool,
    host: str,
    port: int,
    token: str | None,
    allow_host: tuple[str, ...],
    database: str | None,
    sentence_model: str | None,
    n_jobs: int | None,
    quiet: bool,
) -> None:
    """Open a page over a workspace: search by example, teach by comparing, learn.

    \b
    Examples:
      cghash serve --demo
      cghash workspace new photos.ws --items photos/ && cghash serve photos.ws
      CGHASH_TOKEN=$(openssl rand -hex 16) cghash serve photos.ws --host 0.0.0.0
      cghash serve photos.ws --database postgresql://team@db/answers
      cghash serve mail.ws --sentence-model models/ours
    """
    if folder is None and not demo:
        raise click.UsageError("give the folder of a workspace, or --demo")
    try:
        from ..web import server
        from ..workspace.embedders import UnnamedSentences
    except ImportError as error:
        raise MissingDependencyError(f'the page needs {error.name}: pip install "cghash[web]"') from error
    if token is None and not server.is_loopback(host):
        raise click.UsageError(f"--host {host} can be reached by others: set CGHASH_TOKEN, or give --token")
    listening = server.listen(host, port)
    workspace = _workspace(folder, demo, database, sentence_model, quiet)
    if isinstance(workspace.embedder, UnnamedSentences):
        say(f"texts cannot be searched for without --sentence-model, here {workspace.embedder.model!r}", quiet)
    workspace.records.database.check_writable()
    if workspace.records.current is None:
        _begin(workspace, quiet)
    shown = f"[{host}]" if ":" in host else host
    say(f"serving {workspace.folder} at http://{shown}:{listening.getsockname()[1]} (Ctrl-C stops)", quiet)
    try:
        server.serve(workspace, listening, token=token, allowed=allow_host, n_jobs=n_jobs)
    finally:
        workspace.close()


def _begin(workspace: Workspace, quiet: bool) -> None:
    """The first model; without one the page searches by vectors."""
    from ..exceptions import NothingToLearnError
    from ..workspace.fitting import first_model

    say("learning a first model from the vectors alone", quiet)
    try:
        first_model(workspace)
    except NothingToLearnError as error:
        say(f"there is nothing to learn yet ({error}): the page searches by vectors", quiet)
    except OSError as error:  # a disk that is read-only, with a database elsewhere
        say(f"no model can be kept ({error}): the page searches by vectors, and takes answers", quiet)


def _workspace(
    folder: str | None, demo: bool, database: str | None, sentence_model: str | None, quiet: bool
) -> Workspace:
    from ..workspace import Workspace

    if not demo:
        return Workspace.open(str(folder), database, sentence_model=sentence_model)
    from ..workspace.demo import demo_workspace

    path = Path(folder) if folder is not None else _cache() / "demo.ws"
    if not (path / "workspace.json").exists():
        say(f"making a workspace of handwritten digits in {path}", quiet)
        path.parent.mkdir(parents=True, exist_ok=True)
        demo_workspace(path).close()
    return Workspace.open(path, database, sentence_model=sentence_model)


def _cache() -> Path:
    from ..lab.datasets.folders import cache_folder

    return cache_folder()
