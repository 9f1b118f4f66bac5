package profileserver

import "net"

// listen listens at a socket, which its directory protects.
func listen(path string) (net.Listener, error) { return net.Listen("unix", path) }
