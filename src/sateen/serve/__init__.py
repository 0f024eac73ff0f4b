"""`sateen serve`: a page on one's own machine on which a model, a property and ranges become a map of f.

A server process answers the browser and does no work of its own. Two worker processes do it: one learns, the other
answers what is typed and clicked, and takes over where the first one is killed.
"""
