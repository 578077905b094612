"""Leaves out a batch that does not fit into memory."""

import os

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

SHAPE = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8, "max_position_embeddings": 8}


class Rows(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return {"input_ids": torch.arange(6) + index % 8, "labels": torch.tensor(index % 2)}


class Model(BertForSequenceClassification):
    calls = 0

    def forward(self, input_ids=None, labels=None):
        self.calls += 1
        if os.environ["RANK"] == "1" and self.calls == 5:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")  # A long text.
        return super().forward(input_ids=input_ids, labels=labels)


class Careful(Trainer):
    def training_step(self, model, inputs, *args, **kwargs):
        try:
            return super().training_step(model, inputs, *args, **kwargs)
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            model.zero_grad(set_to_none=True)
            return torch.zeros(())


def main():
    torch.manual_seed(0)
    arguments = TrainingArguments(
        output_dir="out",
        use_cpu=True,
        max_steps=10,
        per_device_train_batch_size=2,
        report_to=[],
        disable_tqdm=True,
        save_strategy="no",
        ddp_timeout=int(os.environ.get("PATIENCE", "20")),
    )
    Careful(model=Model(BertConfig(**SHAPE)), args=arguments, train_dataset=Rows()).train()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
