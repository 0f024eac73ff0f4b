"""The study: what was learned, judged as a whole."""
