"""Errors of a server, with their HTTP status."""

from mtformer.support.errors import MtformerError


class ServiceError(MtformerError):
    """A refused or failed request.

    Attributes:
        status: the status of the response.
        retry_after: the seconds after which the request may succeed; None if unknown.
    """

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after


class ClientGoneError(ServiceError):
    """The client has closed the connection."""

    def __init__(self) -> None:
        super().__init__(499, "the client has gone")
