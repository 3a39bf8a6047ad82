"""Motion in time: prescribed motions, efforts or a controller in, named time series out."""
