"""Pages of `mpdoctor explain` that are about mpdoctor itself: one Markdown file each, found by name."""
