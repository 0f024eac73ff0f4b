"""What the system is: one intermediate form, and a reader for each language a model is written in."""
