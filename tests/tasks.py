"""What the processes of test_workers.py do, in a module that imports little: each process imports it."""

import os
import signal
from multiprocessing.connection import Connection


def process_of(task: int) -> int:
    return os.getpid()


def faulty(error: BaseException, task: int) -> int:
    """Fail on task 3."""
    if task == 3:
        raise error
    return -task


def die(task: int) -> int:
    if task == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return -task


def end_at_once(connection: Connection) -> None:
    """Be a process that cannot start."""
