"""How far a posterior can be trusted: intervals with proven coverage, bounds on its error, and what they cost."""
