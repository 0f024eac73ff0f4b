"""How the system runs: paths of a model under given parameters."""
