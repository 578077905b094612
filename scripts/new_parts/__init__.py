"""The skeletons that scripts/new writes: one file per kind."""
