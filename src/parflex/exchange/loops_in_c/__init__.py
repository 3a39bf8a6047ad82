"""The time loop as C, written from its own Python source."""
