"""What moves a robot in time: motions, paths, efforts and wrenches, all as piecewise polynomials."""
