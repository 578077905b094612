"""The live view of a run: where each rank stands, read from the ledgers alone, and the request for the stacks of running ranks.

Everything here works on files that the ranks write in any case; a rank that hangs is seen as well as one that runs.
"""
