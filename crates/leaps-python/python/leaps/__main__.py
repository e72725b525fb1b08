"""``python -m leaps``: the program."""

from ._program import main

main()
