"""The command line: one command per question."""
