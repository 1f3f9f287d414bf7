"""A connection to PostgreSQL: transactions, whole or nothing, a connection that comes back, and errors in our words."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ..exceptions import CGHashError, FormatError, InvalidInputError, ServerError
from .base import require

T = TypeVar("T")

psycopg = require("psycopg", "postgres")

_PATIENCE = 10  # seconds to wait for a server


class Session:
    """One connection, which threads take turns with.

    Parameters
    ----------
    url : postgresql://… or any connection string of libpq
    where : what is worked on, as messages call it
    """

    def __init__(self, url: Any, where: str) -> None:
        self.where = where
        self._url = _checked_url(url)
        self._lock = threading.RLock()
        self._connection: Any = None
        self._closed = False
        self.notices: list[str] = []  # what the server said beside its answers

    def read(self, work: Callable[[Any], T]) -> T:
        """What `work(cursor)` gives, all of it from one moment."""
        return self._run(work, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def change(self, work: Callable[[Any], T]) -> T:
        """What `work(cursor)` gives, after all its changes were kept; or an error, and none was.

        Only where the connection is lost while the commit is on its way, the error leaves open which of the two.
        """
        return self._run(work, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")

    def close(self) -> None:
        """Give the connection back."""
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()

    def _run(self, work: Callable[[Any], T], begin: str) -> T:
        with self._lock, in_our_words(self.where):
            try:
                self._begin(begin)
                with self._connection.cursor() as cursor:
                    done = work(cursor)
                self._connection.execute("COMMIT")
            except BaseException:
                self._undo()
                raise
        return done

    def _begin(self, begin: str) -> None:
        """Begin a transaction, over a new connection where the old one turns out to be gone."""
        if self._closed:
            raise InvalidInputError(f"{self.where} was closed")
        if self._connection is not None:
            try:
                if self._connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
                    self._connection.execute(begin)
                    return
                self._connection.close()  # Ctrl-C left a transaction in it
            except psycopg.OperationalError:
                if not self._connection.closed:
                    raise
        self._connection = psycopg.connect(self._url, autocommit=True, connect_timeout=_PATIENCE)
        self._connection.add_notice_handler(lambda said: self.notices.append(str(said.message_primary)))
        self._connection.execute(begin)

    def _undo(self) -> None:
        if self._connection is None or self._connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            return
        try:
            self._connection.execute("ROLLBACK")
        except psycopg.Error:  # the connection is gone, and the transaction with it
            self._connection.close()


def place(url: Any) -> str:
    """The database of a URL as messages call it: never with a password.

    Examples
    --------
    >>> place("postgresql://ann:secret@db.example.org/shop")
    'shop at db.example.org'
    """
    parts = psycopg.conninfo.conninfo_to_dict(_checked_url(url))
    return " at ".join(str(parts[name]) for name in ("dbname", "host") if name in parts) or "PostgreSQL"


def _checked_url(url: Any) -> str:
    if not isinstance(url, str):
        raise InvalidInputError(f"url must be a string such as postgresql://user@host/database, got {url!r}")
    try:
        psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:  # its message may hold the URL, and that a password
        raise InvalidInputError(
            "url must be a URL such as postgresql://user@host/database, got something else"
        ) from None
    return url


@contextmanager
def in_our_words(where: str) -> Iterator[None]:
    """psycopg's errors as ours."""
    try:
        yield
    except psycopg.Error as error:
        raise _translated(error, where) from error


def _translated(error: Any, where: str) -> CGHashError:
    said = " ".join(filter(None, (error.diag.message_primary, error.diag.message_detail))) or str(error).strip()
    kinds = psycopg.errors
    if isinstance(error, kinds.DependentObjectsStillExist):
        return InvalidInputError(f"{where} cannot be replaced, others depend on it: {said}")
    if isinstance(error, kinds.UndefinedTable | kinds.UndefinedColumn | kinds.UndefinedFunction):
        return FormatError(f"{where} is not, or no longer, a table of codes: {said}")
    if isinstance(error, psycopg.DataError | psycopg.IntegrityError | kinds.DuplicateColumn | kinds.DuplicateFunction):
        return InvalidInputError(f"{where} does not take what it was given: {said}")
    if error.sqlstate is None or isinstance(error, kinds.AdminShutdown | kinds.CrashShutdown | kinds.CannotConnectNow):
        return ServerError(f"{where} cannot be reached, or the connection was lost: {said}")
    return ServerError(f"{where}: PostgreSQL refused: {said}")
