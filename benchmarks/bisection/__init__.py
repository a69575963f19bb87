"""Does a search for a cause keep its promise, and what does it cost?"""
