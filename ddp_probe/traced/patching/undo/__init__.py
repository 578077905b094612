"""What undoes the patching: the registry of patches, and the search for everybody who holds a wrapper."""
