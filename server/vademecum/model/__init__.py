"""Define the rules of the server as pure functions without clock, randomness and I/O. Times and ids are arguments."""
