"""What beams carry inside: forces, moments and stresses of their sections."""
