"""Control: references of the end effector, laws, the sampled loop, and studies with wrong parameters."""
