"""A campaign as a library: plan, place, run or submit, account, continue, cancel; the command line calls it."""
