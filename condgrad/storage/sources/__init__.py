"""Where the samples of a conversion come from: one file for each kind of source."""
