"""Recorded logs of the rule map-location-missing."""

FILE_WAS_SAVED_FROM_CUDA = """
{"event":"process.start","rank":0,"role":"solo"}
{"event":"checkpoint.load","phase":"begin","rank":0,"span":2,"site":{"file":"/train/11_cuda_checkpoint_without_map_location.py","line":25,"function":"main"},"file":{"path":"pretrained.pth"}}
{"event":"checkpoint.load","phase":"error","rank":0,"span":2,"file":{"path":"pretrained.pth","kind":"zip"},"locations":["cuda:0"],"failure":{"type":"RuntimeError","message":"Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False"}}
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False"},"exit_code":1,"uncaught":true}
"""

TEXT_OF_FAILURE_IS_ALL_THERE = """Traceback (most recent call last):
  File "/train/test.py", line 25, in main
    torch.load("pretrained.pth")
  File "/env/site-packages/torch/serialization.py", line 166, in validate_cuda_device
    raise RuntimeError('Attempting to deserialize object on a CUDA '
RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU.
"""
