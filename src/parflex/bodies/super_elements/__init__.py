"""Bodies that a finite-element program has reduced: their matrices from its files, checked, as elastic bodies."""
