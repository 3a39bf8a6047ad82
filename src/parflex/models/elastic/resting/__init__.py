"""How a robot comes to rest: Newton's method, loads that grow, and what happens where they lead no further."""
