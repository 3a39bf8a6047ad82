"""The studio: a design under the hand, with what it answers beside it."""
