"""From a description to a numbered tree of moving links with coordinates and named places."""
