"""What was measured, of a campaign, an import or a table alike: runs, their family, curves, and figures over dates."""
