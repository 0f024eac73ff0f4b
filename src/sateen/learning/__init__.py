"""From counts to a posterior over the satisfaction function."""
