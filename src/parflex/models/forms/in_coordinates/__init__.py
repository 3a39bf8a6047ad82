"""What goes into a model and comes out of it in the coordinates that were asked for, whatever form it is written in."""
