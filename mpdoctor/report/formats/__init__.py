"""Output formats: one file each, exporting `RENDERER` (see `mpdoctor.report.renderer`)."""
