"""What children of doctor run. Only these programs import torch, MMEngine or a vendor's module, each by name and in a separate process."""
