"""The report of a study: one offline HTML page, and the data in it."""
