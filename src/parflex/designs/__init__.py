"""Many designs of one robot: its numbers for other values of its file."""
