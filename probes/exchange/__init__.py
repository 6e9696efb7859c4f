"""Result files of other load generators, read as evidence."""
