"""What the operator does: one module for each controller, scheduler, task or reconciler; `invoke gen-...` adds them."""
