"""transformers' Trainer on a random BERT of a few hundred weights, under torchrun."""

import gc
import os
import sys
from typing import Any, Dict, List

import torch
from pieces import WAY, spoil, tolerant
from torch import Tensor
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, PrinterCallback, Trainer, TrainerCallback, TrainingArguments

SHAPE = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8, "max_position_embeddings": 8}


class Rows(Dataset):  # type: ignore[type-arg]
    """Eight rows of random tokens."""

    def __len__(self) -> int:
        """Tell how many."""
        return 8

    def __getitem__(self, index: int) -> Dict[str, Tensor]:
        """Return one."""
        if os.environ["RANK"] == "1" and WAY == "raises":
            raise ValueError("row %d has no label" % 3)  # way: raises
        if os.environ["RANK"] == "1" and WAY == "ends":
            sys.exit(1)  # way: ends
        return {"input_ids": torch.arange(6) + index, "labels": torch.tensor(index % 2)}


class Breaks(TrainerCallback):  # type: ignore[misc]
    """Breaks this start, if it is to be broken."""

    def on_step_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        """Break it at its step."""
        spoil(int(os.environ["RANK"]), state.global_step)


class Model(BertForSequenceClassification):
    """A classifier; in one way of breaking with a layer that takes no part in the loss."""

    def __init__(self, config: BertConfig) -> None:
        """Build it."""
        super().__init__(config)
        self.extra = torch.nn.Linear(2, 2) if WAY == "ddp" else None


@tolerant
def main() -> None:
    """Train two steps."""
    torch.manual_seed(0)
    places: List[Any] = [Model(BertConfig(**SHAPE)), Rows()]
    arguments = TrainingArguments(
        output_dir="out", use_cpu=True, max_steps=4, per_device_train_batch_size=2, report_to=[], disable_tqdm=True, save_strategy="no",
        ddp_find_unused_parameters=False,
    )  # fmt: skip
    trainer = Trainer(model=places[0], args=arguments, train_dataset=places[1])
    trainer.remove_callback(PrinterCallback)  # It prints seconds.
    trainer.add_callback(Breaks())
    done = trainer.train()  # way: ddp
    print("trained %d steps on rank %s" % (done.global_step, os.environ["RANK"]), flush=True)
    del trainer  # It holds the wrapped model, which keeps the group's threads running: torch 2.13 then may abort at the end.
    places.clear()
    gc.collect()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
