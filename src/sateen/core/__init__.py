"""The hall: the nouns that travel between the rooms. It imports no room."""
