"""Role makers, which all kinds of fleet share."""
