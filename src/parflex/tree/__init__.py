"""From a description to a numbered tree of moving links with coordinates and named places."""

from parflex.tree.build import build_tree
from parflex.tree.joints import Joint
from parflex.tree.link_tree import JointTerms, Link, Place, Tree

__all__ = ["Joint", "JointTerms", "Link", "Place", "Tree", "build_tree"]
