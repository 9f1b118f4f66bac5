package profileserver

import "net"

// listen listens at a socket, which its directory protects.
func listen(path string) (net.Listener, error) { return net.Listen("unix", path) }

// answers reports whether a process listens at a socket.
func answers(path string) bool {
	conn, err := net.Dial("unix", path)
	return err == nil && conn.Close() == nil
}
