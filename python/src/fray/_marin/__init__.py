"""What the modules with marin-fray's names have in common: they are thin over `fray.cluster` and `fray.v2`."""
