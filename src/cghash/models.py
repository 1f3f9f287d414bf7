"""Read a model file, whichever estimator wrote it."""

from __future__ import annotations

import os

from . import peers, storage
from .estimator import CodeEstimator
from .exceptions import FormatError
from .peers import peer_files


def load(path: str | os.PathLike[str]) -> CodeEstimator:
    """Read the model in a file: a CGHash, or a peer.

    Examples
    --------
    >>> import tempfile
    >>> from cghash.peers import LSH
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     LSH(8, random_state=0).fit([[0.0], [1.0]]).save(f"{folder}/lsh.cghash")
    ...     load(f"{folder}/lsh.cghash")
    LSH(n_bits=8, random_state=0)
    """
    if storage.kind_of(path) != peer_files.KIND:
        from .hasher import CGHash

        return CGHash.load(path)
    name = storage.load(path, peer_files.KIND, peer_files.VERSION)[1].get("peer")
    if name not in peers.PEERS:
        raise FormatError(f"{path} holds a model of {name!r}; this cghash knows {', '.join(peers.PEERS)}")
    model: CodeEstimator = getattr(peers, name).load(path)
    return model
