"""What scripts/render_docs prints: one file per page, and what it refuses to print while a declaration is missing."""
