"""What sits in the call path: the wrapper, its one frame on the stack, and the dispatch to the observers."""
