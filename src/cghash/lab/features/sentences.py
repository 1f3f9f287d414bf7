"""Sentence models, loaded so that nothing in their files runs.

What sentence-transformers 6 and later do, as the sources of 6.0 and 6.2 read:

- A class that `modules.json` names outside of their own package is imported with `trust_remote_code=True` alone, from a
  folder as from the Hub. Versions before imported it from any folder.
- `trust_remote_code` in a model's own configuration is dropped. Code that `config.json` names (`auto_map`) is left to
  transformers, which ask at the terminal unless they are told False.
- With `use_safetensors=True` a transformer's weights are safetensors; else a pickled `pytorch_model.bin` may stand in.
  Those of further layers are safetensors, else read by `torch.load` with `weights_only=True`.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from ...exceptions import MissingDependencyError

__all__ = ["load_sentence_model"]

_LEAST = 6  # the first version that imports nothing which a model's folder names


def load_sentence_model(name: str, *, fetch: bool) -> Any:
    """A model of sentence-transformers.

    Parameters
    ----------
    name : of the model, or the folder that holds it
    fetch : whether a model that is not on this machine may be fetched

    Raises
    ------
    MissingDependencyError : sentence-transformers are not here, or too old
    Exception : whatever they raise of a model that they cannot load
    """
    if importlib.util.find_spec("sentence_transformers") is None:
        raise MissingDependencyError(
            'sentence embeddings need sentence-transformers 6 or later: pip install "cghash[sentences]"'
        )
    package = importlib.import_module("sentence_transformers")
    if int(package.__version__.partition(".")[0]) < _LEAST:
        raise MissingDependencyError(
            f"sentence-transformers must be version {_LEAST} or later, got {package.__version__}, which runs code that "
            "a model's folder names: pip install --upgrade sentence-transformers"
        )
    return package.SentenceTransformer(
        name, local_files_only=not fetch, trust_remote_code=False, model_kwargs={"use_safetensors": True}
    )
