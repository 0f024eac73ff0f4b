"""Neural networks with uncertainty, in JAX."""
