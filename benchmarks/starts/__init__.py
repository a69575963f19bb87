"""Does a cluster ever hang at its start? Hundreds of starts, one alone and two at once, of each Python stack."""
