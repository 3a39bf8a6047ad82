"""`python -m parflex`."""

from parflex.cli.app import main

main()
