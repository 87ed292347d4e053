"""What all kinds of fleet share: role makers."""
