"""What the harness adds to a repetition, inside and outside of its clock."""
