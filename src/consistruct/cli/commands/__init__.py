"""One module for each command, as the user types it."""
