"""What users write beside controllers: reconcilers, watchers and periodic tasks."""
