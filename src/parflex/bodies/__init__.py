"""Bodies: rigid, beam, modal, reduced and superelement; the recursion asks a body for its wrench and inertia."""
