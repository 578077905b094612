"""A part of the model was saved from its wrapper: the names have 'module.' in the middle."""

import torch
from pieces import TinyModel


def main() -> None:
    """Load what another program has saved."""
    state = {name.replace("backbone.", "backbone.module."): value for name, value in TinyModel().state_dict().items()}
    torch.save(state, "last.pth")
    model = TinyModel()
    model.load_state_dict(torch.load("last.pth", map_location="cpu"))
    print("loaded", flush=True)


if __name__ == "__main__":
    main()
