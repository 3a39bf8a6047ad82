"""Independent models of the robots, written from the file format alone, to check the package against."""
