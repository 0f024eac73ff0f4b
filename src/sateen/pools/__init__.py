"""Where work is done besides this process: threads, processes, and clusters, all behind one protocol, `Pool`."""
