"""Define rigid, beam, modal, reduced and superelement bodies, of which the recursion requests wrench and inertia."""
