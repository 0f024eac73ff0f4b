"""The text of expressions, and the parts of the PRISM language that models and properties share."""
