"""How much does a campaign decide in how many minutes, and how wide are its intervals?"""
