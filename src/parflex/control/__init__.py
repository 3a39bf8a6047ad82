"""Control: laws, plants, references, runs and studies."""
