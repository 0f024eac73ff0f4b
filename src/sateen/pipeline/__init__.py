"""Tasks whose results are files, the folder they stand in, and the processes that compute them side by side."""
