"""Motions that tell the parameters of a robot best."""
