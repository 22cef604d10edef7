"""Define the rules of the program as pure functions without clock, randomness and I/O. Time and ids are arguments."""
