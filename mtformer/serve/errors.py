"""What a server refuses, with the status that HTTP has for it."""

from mtformer.support.errors import MtformerError


class ServiceError(MtformerError):
    """A request that is not answered as its caller wanted.

    Attributes:
        status: the status of the response.
        retry_after: after how many seconds the request may succeed; None if that cannot be said.
    """

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after


class ClientGoneError(ServiceError):
    """The client has closed the connection, so that nobody reads the answer."""

    def __init__(self) -> None:
        super().__init__(499, "the client has gone")
