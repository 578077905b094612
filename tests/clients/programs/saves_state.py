"""Accelerate saves and loads its state, and transformers saves a model."""

import torch
from accelerate import Accelerator
from transformers import BertConfig, BertForSequenceClassification

SHAPE = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8, "max_position_embeddings": 8}

accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(4, 2)
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
accelerator.save_state("state")
accelerator.load_state("state")
BertForSequenceClassification(BertConfig(**SHAPE)).save_pretrained("bert")
