"""Records simulated: the robot under the controller that moved it, with other parameters."""
