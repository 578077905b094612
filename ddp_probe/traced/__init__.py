"""What runs in a rank or a launcher, once torch or mmengine is really imported: probes, the recorder, the ledger, the watcher, remedies."""
