"""The words of the tool as types: site, suite, image, variant, plan. Pure: no disk, no clock, no network."""
