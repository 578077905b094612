"""A Lightning job that saves: the best weights on rank 0, which all ranks load again, and a checkpoint of the Trainer at the end of each epoch."""

from datetime import timedelta
from pathlib import Path

import lightning
import torch
from lightning.pytorch.strategies import DDPStrategy
from pieces import WAY, ToyModel, data, spoil, tolerant
from torch import Tensor
from torch.utils.data import DataLoader

BEST = Path("best.pt")
# A job that hangs ends by itself; the others may take long to import what they need.
PATIENCE = timedelta(seconds=70 if WAY in ("hang", "guarded") else 600)


class Module(lightning.LightningModule):
    """The model, its step and its optimizer."""

    def __init__(self) -> None:
        """Build it."""
        super().__init__()
        self.model = ToyModel(unused=WAY == "ddp")

    def training_step(self, batch: Tensor, index: int) -> Tensor:
        """Return the loss."""
        loss = self.model(batch).pow(2).mean()
        spoil(self.global_rank, index)
        print("rank %d step %d loss %.4f" % (self.global_rank, index, loss.item()), flush=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return one."""
        return torch.optim.SGD(self.parameters(), lr=0.01)


class Saves(lightning.Callback):
    """Saves at the end of each epoch."""

    def on_train_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Save on rank 0 what all go on with, and then the Trainer's own checkpoint, which takes all ranks."""
        if trainer.is_global_zero:
            torch.save(pl_module.state_dict(), BEST)
        trainer.strategy.barrier()
        pl_module.load_state_dict(torch.load(BEST))
        if WAY != "guarded" or trainer.is_global_zero:  # way: guarded
            trainer.save_checkpoint("last.ckpt")  # way: guarded


@tolerant
def main() -> None:
    """Train two epochs."""
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy=DDPStrategy(timeout=PATIENCE, process_group_backend="gloo"),
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[Saves()],
    )
    trainer.fit(Module(), DataLoader(torch.cat([data(0), data(1)]), batch_size=4))  # way: ddp


if __name__ == "__main__":
    main()
