"""The experiment: verify, time, judge and draw what `online_softmax` and its peers do.

Each module with a `main` is a command: `python -m experiment.verify --help`.
"""

import sys


class InputError(ValueError):
    """What the user asked for cannot be; the message names the value and what is accepted."""


class CheckFailed(Exception):
    """The input was fine and a check was not passed; the message says which."""


def command(main):
    """Run `main` as a command line: exit 2 on bad input, 1 on a failed check, one line each."""
    try:
        main()
    except (InputError, CheckFailed) as error:
        print(error, file=sys.stderr)
        sys.exit(2 if isinstance(error, InputError) else 1)
