"""One file per kind of certificate: standard library alone, exact, each can be run by itself."""
