"""Files of MuJoCo: looked through, compiled by its own compiler, made tables of a robot file."""
