"""Design of robots: responses, their exact sensitivities to the numbers of the file, and optimisation."""
