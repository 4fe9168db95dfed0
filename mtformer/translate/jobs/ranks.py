"""Jobs of several processes started by torchrun: each translates a share of the lines; the first joins the shares."""

import logging
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import torch

from mtformer.support.errors import MtformerError, UserError
from mtformer.support.files import open_atomically
from mtformer.support.processes.launch import end_at_once
from mtformer.support.processes.ranks import Ranks, joined_ranks
from mtformer.translate.jobs.core import Load, process
from mtformer.translate.jobs.options import Shard
from mtformer.translate.jobs.partial import PartialFile
from mtformer.translate.jobs.translating import TranslationJob


def run_on_ranks(job: TranslationJob, load: Load) -> None:
    """Translate this process's share of a job; never returns under torchrun.

    See :func:`mtformer.translate.jobs.core.run`.

    Each share is a separate unfinished output until all are complete, so ``--resume`` continues each of them.

    Raises:
        UserError: as raised by ``run``, in any process.
        MtformerError: as raised by ``run``, in any process; or the connection to another process was lost.
    """
    job.check()
    with joined_ranks(torch.device("cpu"), advice="continue with --resume") as ranks:
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        logging.getLogger("mtformer").setLevel(logging.INFO if ranks.is_first else logging.WARNING)
        shares = [job.share(Shard(rank + 1, ranks.size)) for rank in range(ranks.size)]
        _raise_for_all(ranks, _failure_in(shares[ranks.rank], load))
        ranks.by_first(lambda: _join(job.output, [PartialFile(share.output) for share in shares]))
    end_at_once()


def _failure_in(share: TranslationJob, load: Load) -> MtformerError | None:
    """Translate a share, and return the error, if any."""
    try:
        file = PartialFile(share.output, share.settings())
        with file.opened(resume=share.resume):
            process(share, file, load)
    except MtformerError as error:
        return error
    return None


def _raise_for_all(ranks: Ranks, failure: MtformerError | None) -> None:
    """If a rank has failed, end all ranks; the first one reports the error."""
    mine = [] if failure is None else [(ranks.rank, isinstance(failure, UserError), str(failure))]
    failures = ranks.collect(mine)
    if not failures:
        return
    kind = UserError if all(is_user_error for _, is_user_error, _ in failures) else MtformerError
    if not ranks.is_first:
        raise SystemExit(2 if kind is UserError else 1)
    raise kind("; ".join(dict.fromkeys(message for _, _, message in failures)))


def _join(output: Path, shares: Sequence[PartialFile]) -> None:
    try:
        with open_atomically(output) as file:
            for share in shares:
                with share.part.open("rb") as part:
                    shutil.copyfileobj(part, file)
    except FileNotFoundError as error:
        raise MtformerError(f"{error.filename} is not here: all machines must share the folder of {output}") from error
    except OSError as error:
        raise MtformerError(f"cannot write {output}: {error.strerror}") from error
    for share in shares:
        share.discard()
