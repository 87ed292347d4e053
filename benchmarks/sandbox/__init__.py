"""W1 as services of systemd, inside their sandbox and outside of it."""
