"""From traced expressions to small straight-line programs, and from those to compiled functions and source code."""
