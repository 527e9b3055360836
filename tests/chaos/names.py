"""The names of the chaos."""

PATTERN = "/chaos/*"
REACTION = "chaos.count"
PUBLISHERS = ("ann", "bob", "eve")
READERS = ("page", "slow", "program")
