"""Ctrl-C and SIGTERM turned into a wish that the loop grants when the step is done."""

import os
import signal
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupt:
    """While it is entered, the first Ctrl-C or SIGTERM sets :attr:`requested`; a second one interrupts at once."""

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
