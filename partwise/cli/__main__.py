"""``python -m partwise.cli``."""

from partwise.cli import main

main()
