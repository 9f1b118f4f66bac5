package registrytest

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// FreePort returns a port of this machine that no process listens at, for a server that
// starts later, or again. No system gives it to who asks for any port: one that it
// gave may be another's in the moment in which it is closed.
func FreePort() (int, error) {
	l, err := listen()
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// listen takes such a port. Systems give those from 32768 on, agents from 20000.
func listen() (net.Listener, error) {
	const first, count = 10000, 10000
	for range 100 {
		port := first + rand.IntN(count)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return l, nil
		}
	}
	return nil, errors.New("find a free port: a hundred of them are in use")
}
