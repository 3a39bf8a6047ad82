"""Turn a description into a numbered tree of links with joints, places and force elements."""
