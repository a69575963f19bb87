"""A campaign as a library: plan, place, run or submit, continue, cancel; measure, bisect."""
