"""Puts the activator in place for this interpreter, proves it, takes it away again; standard library only.

Nothing of it is imported in a job. ``uninstall`` needs neither the package's dependencies nor the rest of the package.
"""
