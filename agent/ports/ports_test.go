package ports

import (
	"net"
	"strconv"
	"testing"

	"github.com/fray-ml/fray/schema"
)

// A port without a fixed number is the same at every start, unless it is in use.
func TestPortsStayTheSame(t *testing.T) {
	const address = "127.0.0.1"
	ports := []schema.Port{{Name: "http"}, {Name: "metrics"}}
	first, err := Pick(ports, address, "")
	if err != nil {
		t.Fatal(err)
	}
	again, err := Pick(ports, address, "")
	if err != nil {
		t.Fatal(err)
	}
	if first["http"] != again["http"] || first["metrics"] != again["metrics"] || first["http"] == first["metrics"] {
		t.Errorf("ports are %v, then %v", first, again)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(first["http"])))
	if err != nil {
		t.Fatal(err)
	}
	other, err := Pick(ports, address, "")
	if err != nil {
		t.Fatal(err)
	}
	if other["http"] == first["http"] {
		t.Errorf("port %d was picked though a program listens there", first["http"])
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
