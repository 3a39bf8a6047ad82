"""Bodies: what carries mass. The recursion asks a body for its wrench and its inertia, whatever its kind."""
