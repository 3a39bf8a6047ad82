"""From a description to a numbered tree of links with joints, places and force elements."""
