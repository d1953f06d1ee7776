"""CRD: writes CustomResourceDefinitions from version classes, and refuses what the API server would refuse."""
