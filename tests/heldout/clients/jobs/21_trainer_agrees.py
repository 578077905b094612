"""Evaluates on all ranks and writes on rank 0; the best of all decides when to stop."""

import os

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, EarlyStoppingCallback, Trainer, TrainerCallback, TrainingArguments

SHAPE = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8, "max_position_embeddings": 8}


class Rows(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return {"input_ids": torch.arange(6) + index % 8, "labels": torch.tensor(index % 2)}


class WriteResults(TrainerCallback):
    def on_evaluate(self, args, state, control, metrics, **kwargs):
        if state.is_world_process_zero:
            with open("results.txt", "a") as results:
                results.write("%g %g\n" % (state.epoch, metrics["eval_loss"]))


def main():
    torch.manual_seed(0)
    arguments = TrainingArguments(
        output_dir="out",
        use_cpu=True,
        num_train_epochs=2,
        per_device_train_batch_size=2,
        report_to=[],
        disable_tqdm=True,
        eval_strategy="epoch",
        save_strategy="epoch",
        load_best_model_at_end=True,
        metric_for_best_model="eval_loss",
        ddp_timeout=int(os.environ.get("PATIENCE", "20")),
    )
    model = BertForSequenceClassification(BertConfig(**SHAPE))
    callbacks = [WriteResults(), EarlyStoppingCallback(1)]
    trainer = Trainer(model=model, args=arguments, train_dataset=Rows(16), eval_dataset=Rows(9), callbacks=callbacks)
    trainer.train()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
