"""Loaded by `make sanitize` at Python's start: takes the editable install's finder away, which outruns PYTHONPATH."""

import sys

sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "ScikitBuildRedirectingFinder"]
