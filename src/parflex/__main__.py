"""`python -m parflex`."""

from parflex.cli.main import main

main()
