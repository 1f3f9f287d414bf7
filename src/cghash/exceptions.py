"""Every error and warning that cghash raises by itself.

CGHashError
├── InvalidInputError (ValueError)     an argument is not what it must be
├── NothingToLearnError (ValueError)   the supervision holds no comparison that any function could satisfy
├── FormatError (ValueError)           a file is truncated, altered, foreign or of an unknown version
├── InUseError (OSError)               another writer has the file, or has changed it since
├── InDoubtError (RuntimeError)        after an error, memory and disk may disagree: load again
├── ServerError (OSError)              a server of ours refused, failed or could not be reached
├── ClusterError (OSError)             a Dask scheduler cannot be reached, is lost, or its workers die over the work
├── MissingDataError (FileNotFoundError)   a data set is not here, and could not be fetched
├── MissingDependencyError (ImportError)   an optional package is needed
├── MissingDeviceError (RuntimeError)   a GPU was asked for that is not here
└── DeviceMemoryError (MemoryError)    a GPU has too little memory left

CGHashWarning (UserWarning)
├── FewerBitsWarning                   the fit ended with fewer bits than were asked for
└── ConvergenceWarning                 a solver stopped before its tolerance
"""

from __future__ import annotations


class CGHashError(Exception):
    """Base of all errors of cghash."""


class InvalidInputError(CGHashError, ValueError):
    """An argument is not what it must be; the message says what was expected and what came."""


class NothingToLearnError(CGHashError, ValueError):
    """The supervision holds no comparison that any hash function could satisfy."""


class FormatError(CGHashError, ValueError):
    """A file is truncated, altered, foreign or of an unknown version."""


class InUseError(CGHashError, OSError):
    """Another writer has the file, or has changed it since it was read."""


class InDoubtError(CGHashError, RuntimeError):
    """After an error, what is in memory may not be what is on the disk; no more changes are taken: load again."""


class ServerError(CGHashError, OSError):
    """A server refused a token, failed, or could not be reached."""


class ClusterError(CGHashError, OSError):
    """A Dask scheduler cannot be reached, is lost, or its workers die over the work; what was finished is kept."""


class MissingDataError(CGHashError, FileNotFoundError):
    """A data set is not here and could not be fetched; the message says where to get it and where to put it."""


class MissingDependencyError(CGHashError, ImportError):
    """An optional package is needed; the message says which and how to install it."""


class MissingDeviceError(CGHashError, RuntimeError):
    """A GPU was asked for, and there is none, or none of that number."""


class DeviceMemoryError(CGHashError, MemoryError):
    """A GPU has too little memory left; the message says how much was needed and what to lower."""


class CGHashWarning(UserWarning):
    """Base of all warnings of cghash."""


class FewerBitsWarning(CGHashWarning):
    """The fit ended with fewer bits than were asked for."""


class ConvergenceWarning(CGHashWarning):
    """A solver stopped before its tolerance."""
