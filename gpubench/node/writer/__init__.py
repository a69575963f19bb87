"""The store's writer: append samples, finish a run by rename. Node half: Python 3.9, standard library only."""
