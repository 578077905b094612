"""A configuration file."""

launcher = "pytorch"
max_epochs = 1
