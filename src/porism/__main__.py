"""`python -m porism` is the command `porism`."""

from porism.cli import main

main()
