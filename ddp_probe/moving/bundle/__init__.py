"""Makes one archive of a run, to be given away: what goes in, masked; bounded; with its listing. reading/bundled.py opens it."""
