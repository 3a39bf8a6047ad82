"""The viewer: a page in the browser of this machine."""
