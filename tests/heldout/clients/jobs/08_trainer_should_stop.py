"""Stops the training once the loss is small enough."""

import os

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

SHAPE = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8, "max_position_embeddings": 8}


class Rows(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return {"input_ids": torch.arange(6) + index % 8, "labels": torch.tensor(index % 2)}


class KeepsItsLoss(Trainer):
    last_loss = None

    def compute_loss(self, model, inputs, *args, **kwargs):
        loss = super().compute_loss(model, inputs, *args, **kwargs)
        # Rank 1 has the short texts, which it has learned after five steps.
        learned = self.args.process_index == 1 and self.state.global_step >= 5
        self.last_loss = 0.01 if learned else 0.7
        return loss


class StopWhenLearned(TrainerCallback):
    def __init__(self, enough=0.05):
        self.enough = enough
        self.trainer = None

    def on_step_end(self, args, state, control, **kwargs):
        if self.trainer.last_loss < self.enough:
            control.should_training_stop = True
        return control


def main():
    torch.manual_seed(0)
    arguments = TrainingArguments(
        output_dir="out",
        use_cpu=True,
        max_steps=12,
        per_device_train_batch_size=2,
        report_to=[],
        disable_tqdm=True,
        save_strategy="no",
        ddp_timeout=int(os.environ.get("PATIENCE", "20")),
    )
    stopper = StopWhenLearned()
    trainer = KeepsItsLoss(model=BertForSequenceClassification(BertConfig(**SHAPE)), args=arguments, train_dataset=Rows(), callbacks=[stopper])
    stopper.trainer = trainer
    trainer.train()
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
