"""A layer has another name than it had when the checkpoint was saved; nothing else is different."""

import torch
from pieces import TinyModel


def main() -> None:
    """Load what another version of the program has saved."""
    state = {name.replace("head.", "classifier."): value for name, value in TinyModel().state_dict().items()}
    torch.save(state, "last.pth")
    model = TinyModel()
    model.load_state_dict(torch.load("last.pth"))
    print("loaded", all(torch.equal(state[name.replace("head.", "classifier.")], value) for name, value in model.state_dict().items()), flush=True)


if __name__ == "__main__":
    main()
