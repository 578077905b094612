"""What scripts/torch_tests runs."""
