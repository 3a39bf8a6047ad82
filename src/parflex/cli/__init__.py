"""The command line: one verb per question, thin."""
