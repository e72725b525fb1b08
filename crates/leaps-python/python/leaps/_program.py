"""The program ``leaps``, which comes with the package."""

import signal
import sys

from . import _leaps


def main() -> None:
    """Run the program on this process's command line and exit with its code.

    Python's own handling of Ctrl-C is switched off first: the program has its own, with exit code 130.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_leaps.program(["leaps", *sys.argv[1:]]))
