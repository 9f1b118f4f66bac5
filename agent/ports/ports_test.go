package ports

import (
	"fmt"
	"maps"
	"net"
	"strconv"
	"testing"

	"github.com/fray-ml/fray/schema"
)

// TestGangTakesWhatItWants: ports that are asked for, and others where those are in use.
func TestGangTakesWhatItWants(t *testing.T) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	var first, second Gang
	free, err := first.Reserve([2]int{})
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckFree(free[1]); err == nil {
		t.Errorf("port %d is free though it is kept", free[1])
	}
	first.Release()
	if err := CheckFree(free[1]); err != nil {
		t.Error(err)
	}
	got, err := second.Reserve([2]int{taken, free[1]})
	if err != nil || got[0] == taken || got[0] == 0 || got[1] != free[1] {
		t.Errorf("got %v, %v, want another port than %d and %d", got, err, taken, free[1])
	}
	second.Release()
}

// A port without a fixed number is the same at every start, unless it is in use.
func TestPortsStayTheSame(t *testing.T) {
	const address = "127.0.0.1"
	var ports []schema.Port
	var first map[string]int
	// Another program of this machine may have the port of a name.
	for tries := 0; ; tries++ {
		ports = []schema.Port{{Name: fmt.Sprintf("http%d", tries)}, {Name: fmt.Sprintf("metrics%d", tries)}}
		var err error
		if first, err = Pick(ports, address, ""); err != nil {
			t.Fatal(err)
		}
		again, err := Pick(ports, address, "")
		if err != nil {
			t.Fatal(err)
		}
		if maps.Equal(first, again) && first[ports[0].Name] != first[ports[1].Name] {
			break
		}
		if tries == 20 {
			t.Fatalf("ports are %v, then %v", first, again)
		}
	}
	http := ports[0].Name
	l, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(first[http])))
	if err != nil {
		t.Fatal(err)
	}
	other, err := Pick(ports, address, "")
	if err != nil {
		t.Fatal(err)
	}
	if other[http] == first[http] {
		t.Errorf("port %d was picked though a program listens there", first[http])
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
