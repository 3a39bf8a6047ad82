"""Forms in which the models of a robot are written; `choose` of `choice` decides, and all have the same methods."""
