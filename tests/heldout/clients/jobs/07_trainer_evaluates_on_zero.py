"""Evaluates after each epoch from a callback, where the results are written."""

import os

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

SHAPE = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8, "max_position_embeddings": 8}


class Rows(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return {"input_ids": torch.arange(6) + index % 8, "labels": torch.tensor(index % 2)}


class WriteResults(TrainerCallback):
    def __init__(self):
        self.trainer = None

    def on_epoch_end(self, args, state, control, **kwargs):
        if state.is_world_process_zero:
            metrics = self.trainer.evaluate()
            with open("results.txt", "a") as results:
                results.write("%g %g\n" % (state.epoch, metrics["eval_loss"]))


def main():
    torch.manual_seed(0)
    arguments = TrainingArguments(
        output_dir="out",
        use_cpu=True,
        num_train_epochs=3,
        per_device_train_batch_size=2,
        report_to=[],
        disable_tqdm=True,
        save_strategy="no",
        ddp_timeout=int(os.environ.get("PATIENCE", "20")),
    )
    writer = WriteResults()
    trainer = Trainer(
        model=BertForSequenceClassification(BertConfig(**SHAPE)), args=arguments, train_dataset=Rows(16), eval_dataset=Rows(8), callbacks=[writer]
    )
    writer.trainer = trainer
    trainer.train()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
