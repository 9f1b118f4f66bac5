package ports

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/schema"
)

// reservedPort is a port that no other program of this machine gets while it is
// held: the socket is bound on every address but does not listen, so that
// nothing can connect to it. A program binds it right after release.
type reservedPort struct {
	number int
	fd     int
}

// reservePort takes a port; 0 takes any free one.
func reservePort(number int) (*reservedPort, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve port: %w", err)
	}
	unix.CloseOnExec(fd)
	if number != 0 {
		// Connections of an ended task that are still timing out are no obstacle.
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	port := 0
	if err == nil {
		port, err = bindPort(fd, number)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reserve port %d: %w", number, err), unix.Close(fd))
	}
	return &reservedPort{number: port, fd: fd}, nil
}

func bindPort(fd, number int) (int, error) {
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: number}); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	inet, ok := name.(*unix.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("socket has an address of type %T", name)
	}
	return inet.Port, nil
}

func (p *reservedPort) release() {
	if p.fd >= 0 {
		_ = unix.Close(p.fd) // a socket without data: there is nothing to lose
		p.fd = -1
	}
}

// Gang are the two ports that a host keeps for being a gang's coordinator.
type Gang [2]*reservedPort

// Reserve takes the ports it had before if they are free, and others if not.
func (g *Gang) Reserve(before [2]int) ([2]int, error) {
	var numbers [2]int
	for i := range g {
		if g[i] == nil || g[i].fd < 0 {
			p, err := reservePort(before[i])
			if err != nil {
				p, err = reservePort(0)
			}
			if err != nil {
				return before, err
			}
			g[i] = p
		}
		numbers[i] = g[i].number
	}
	return numbers, nil
}

// Release gives the ports up.
func (g *Gang) Release() {
	for _, p := range g {
		if p != nil {
			p.release()
		}
	}
}

// GangOfMachine are the ports that JAX and MEGASCALE use where nothing else is chosen
// (JAX's own choice on Cloud TPU, and Ray's): a host that is a machine of its own
// keeps them if they are free, so that firewall rules can name them.
func GangOfMachine() [2]int { return [2]int{8476, 8081} }

// CheckFree reports that a program has a port.
func CheckFree(number int) error {
	p, err := reservePort(number)
	if err == nil {
		p.release()
	}
	return err
}

// InUseError means that a task's fixed port is taken.
type InUseError struct {
	port    schema.Port
	address string
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("port %d (%s) is in use on %s", e.port.Number, e.port.Name, e.address)
}

// Usual is where a port of a host's tasks is if it is free: always the same
// one for what distinguishes hosts here, their address or their directory, so that
// clients that know the number find a restarted task again. It lies below the range
// from which systems take ports for outgoing connections.
func Usual(whose, name string) int {
	const first, count = 20000, 12000
	h := fnv.New32a()
	_, _ = h.Write([]byte(whose + "\x00" + name)) // never fails
	return first + int(h.Sum32()%count)
}

// Pick settles the number of every port of a task: fixed ones must be
// free on the host's address, others are the usual ones of the host, or of the
// packed task that it is of, or any free ones.
func Pick(ports []schema.Port, address, packed string) (map[string]int, error) {
	picked := make(map[string]int, len(ports))
	var held []*reservedPort
	defer func() {
		for _, p := range held {
			p.release()
		}
	}()
	for _, port := range ports {
		if port.Number == 0 {
			p, err := reservePort(Usual(address+packed, port.Name))
			if err != nil {
				p, err = reservePort(0)
			}
			if err != nil {
				return nil, err
			}
			held = append(held, p)
			picked[port.Name] = p.number
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port.Number)))
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, &InUseError{port: port, address: address}
		}
		if err != nil {
			return nil, fmt.Errorf("port %d (%s): %w", port.Number, port.Name, err)
		}
		l.Close()
		picked[port.Name] = port.Number
	}
	return picked, nil
}
