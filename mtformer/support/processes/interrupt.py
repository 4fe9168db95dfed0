"""Turn Ctrl-C and SIGTERM into a request that the training loop meets at the end of a step."""

import os
import signal
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupt:
    """Inside, the first Ctrl-C or SIGTERM sets :attr:`requested`; the second one raises KeyboardInterrupt at once."""

    _SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.requested = False
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self._previous = {number: signal.signal(number, self._handle) for number in self._SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        os.write(2, b"\nsaving after this step; Ctrl-C again stops at once\n")  # a signal handler must not use print
