"""The parts of `fray.rpc.codec`."""
