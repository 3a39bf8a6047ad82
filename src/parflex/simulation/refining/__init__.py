"""How many elements a run needs: runs with more of them until they agree, and what the motion asks of elements."""
