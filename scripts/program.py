"""How the other scripts end."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from mtformer.support.errors import MtformerError, UserError


def run_program(main: Callable[[], None]) -> None:
    """Run a script; on an error print a sentence, and exit as mtformer does: with 2 on bad input, else with 1."""
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except subprocess.CalledProcessError as error:  # which has printed why
        sys.exit(error.returncode if error.returncode > 0 else 1)
    except (MtformerError, OSError) as error:
        is_of_user = isinstance(error, (UserError, FileNotFoundError, FileExistsError, NotADirectoryError))
        print(f"{Path(sys.argv[0]).stem}: {error}", file=sys.stderr)
        sys.exit(2 if is_of_user else 1)
