"""From f to a decision: where f is above a threshold, where it is largest, what matters, where to run next."""
