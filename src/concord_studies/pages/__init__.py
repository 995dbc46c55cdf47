"""Pages: what is read of results, as Markdown files and as a site."""
