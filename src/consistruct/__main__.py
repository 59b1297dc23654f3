"""``python -m consistruct`` is the command line."""

from consistruct.cli import main

if __name__ == "__main__":
    main()
