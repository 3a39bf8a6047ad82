"""Published numbers of the papers beside computed ones, and a page that shows them."""
