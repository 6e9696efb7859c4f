"""One module per kind of page; each takes an Atlas and yields Pages."""
