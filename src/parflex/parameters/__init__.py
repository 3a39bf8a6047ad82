"""Treat keys of the robot file as numbers of a robot: bind, differentiate, batch."""
