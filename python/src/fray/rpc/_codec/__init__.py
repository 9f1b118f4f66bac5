"""The modules of `fray.rpc.codec`, which alone imports them from outside."""
