"""Equilibria and conditions of many poses: programs of the whole tree, and what follows from them pose by pose."""
