"""A campaign of a million samples merged, compared and reported, and the same samples read as the seed reads them."""
