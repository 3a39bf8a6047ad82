"""The recursion over the tree: motion from the base outwards, wrenches from the tips inwards."""
