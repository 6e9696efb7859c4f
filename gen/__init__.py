"""Everything that decides and renders: the same files and the same `today` give the same bytes."""
