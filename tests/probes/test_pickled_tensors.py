"""A tensor that is pickled or unpickled is no checkpoint: only what the job itself saves and loads is recorded."""

CODE = """
import copy, io, multiprocessing, os, pickle
import ddp_probe; ddp_probe.activate()
import torch
import torch.distributed as dist
import torch.multiprocessing

class Pickles(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return pickle.dumps(torch.ones(2) * index)

tensor = torch.ones(3)
pickle.loads(pickle.dumps({"a": tensor, "b": torch.nn.Linear(2, 2)}))
copy.deepcopy(torch.nn.Linear(2, 2))
for queue, item in ((torch.multiprocessing.SimpleQueue(), tensor), (multiprocessing.SimpleQueue(), pickle.dumps(tensor))):
    queue.put(item)
    queue.get()
dist.init_process_group("gloo", init_method="file://" + os.path.abspath("meet"), rank=0, world_size=1)
gathered = [None]
dist.all_gather_object(gathered, {"a": tensor})
dist.broadcast_object_list([{"a": tensor}])
if hasattr(dist, "gather_object"):
    dist.gather_object({"a": tensor}, gathered)
for batch in torch.utils.data.DataLoader(Pickles(), num_workers=1, collate_fn=lambda items: [pickle.loads(item) for item in items]):
    pass
dist.destroy_process_group()
torch.save({"a": tensor}, "state.pt")
torch.load("state.pt")
stream = io.BytesIO()
torch.save({"a": tensor}, stream)
stream.seek(0)
torch.load(stream)
"""


OPENED = """
import ddp_probe; ddp_probe.activate()
import torch
torch.save(1, "by_path.pt")
with open("opened.pt", "wb") as file:
    torch.save(2, file)
"""


def test_a_file_that_the_job_opened(run_python, clean_env, tmp_path, read_events):
    """A save into a file that the job has opened says so: its path stands at another call."""
    done = run_python(OPENED, env=clean_env(DDP_PROBE_DIR=str(tmp_path / "runs")), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    saves = [event for event in read_events(tmp_path / "runs" / "latest") if event["event"] == "checkpoint.save" and event["phase"] == "begin"]
    assert [(event["path"], event.get("opened")) for event in saves] == [("by_path.pt", None), ("opened.pt", True)]


def test_only_checkpoints_are_recorded(run_python, clean_env, tmp_path, read_events):
    """Pickles, queues, copies, objects for other ranks and DataLoader workers leave no save and no load; torch.save and torch.load do."""
    done = run_python(CODE, env=clean_env(DDP_PROBE_DIR=str(tmp_path / "runs")), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    begins = [event for event in read_events(tmp_path / "runs" / "latest") if event["phase"] == "begin"]
    saved = [event["path"] for event in begins if event["event"] == "checkpoint.save"]
    loaded = [event["file"]["path"] for event in begins if event["event"] == "checkpoint.load"]
    assert (saved, loaded) == (["state.pt", "<stream>"], ["state.pt", "<_io.BytesIO>"])
