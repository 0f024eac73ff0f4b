"""Many runs, counted: over threads or any executor, resumable, and the same however the work was cut."""
