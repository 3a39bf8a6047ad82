"""Parameters of a robot from measurements, and motions that tell them."""
