"""Gaussian processes: sparse approximations, their inference and their posteriors."""
