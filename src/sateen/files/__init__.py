"""Files: one container for arrays and words, one way to write a file whole, checksums."""
