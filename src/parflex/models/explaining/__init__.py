"""How the model of a robot is made, in words and equations."""
