"""What is seen: figures, and reports that gather them."""
