"""Engine: from a stream of changes to the worker that reconciles a key."""
