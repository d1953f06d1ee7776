"""Controllers, schedulers, tasks and reconcilers, one module each; `invoke gen-...` adds them."""
