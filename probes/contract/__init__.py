"""The measurement contract, measured: all eight quantities of one side or of two, a sample per repetition."""
