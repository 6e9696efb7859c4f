"""What each command of `python -m gen` does; each takes a Call and returns an Outcome, and prints nothing."""
