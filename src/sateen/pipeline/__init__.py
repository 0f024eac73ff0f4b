"""Tasks with files: the folder they stand in, and the processes that do them."""
