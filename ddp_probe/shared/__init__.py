"""What both halves know: the schema, the ledger's format, the settings, the masks, the accelerators. Imports nothing of another room."""
