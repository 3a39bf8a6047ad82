"""Search for better designs: problems from files, steps, stock sizes, fronts."""
