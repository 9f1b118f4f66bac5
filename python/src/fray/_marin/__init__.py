"""What the modules with marin-fray's names have in common, thin over `fray.cluster` and `fray.v2`."""
