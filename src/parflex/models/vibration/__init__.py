"""What the number of elements does to frequencies: how far they are off, and robots with more elements."""
