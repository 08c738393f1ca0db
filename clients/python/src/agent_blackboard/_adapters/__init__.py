"""Parts that adapters to frameworks share: names of boards for any ids, a client for each event loop, long strings."""
