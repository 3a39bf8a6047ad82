"""A platform on legs that follow it in closed form: the equations of the leg form."""
