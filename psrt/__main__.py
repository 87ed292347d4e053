"""`python -m psrt` is the `psrt` command; the launcher starts its children this way."""

from psrt.cli.main import main

if __name__ == "__main__":
    main()
