"""Figures, notebook pages, scene, viewer and studio."""
