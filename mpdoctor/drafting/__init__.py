"""Drafts of recipes for `mpdoctor recipe`, from a training script where one is given."""
