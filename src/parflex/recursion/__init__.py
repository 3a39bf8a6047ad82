"""Recursive algorithms over the tree: kinematics outwards, forces inwards."""
