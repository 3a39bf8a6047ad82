"""Run recursive algorithms over the tree: kinematics outwards, forces inwards."""
