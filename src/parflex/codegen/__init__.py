"""The compiler: traces, optimisation passes, emitters, machine code and the program cache."""
