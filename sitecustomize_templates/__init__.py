"""What install and run put in place, shipped as data; nothing here is imported as part of the package."""
