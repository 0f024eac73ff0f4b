"""What is asked about the system: formulas, how they are written, and when they hold on a path."""
