package across

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

func dial(t *testing.T, s *server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

// closeError is the error in the last frame of a connection.
func closeError(t *testing.T, c io.Reader) *rpcerror.Error {
	t.Helper()
	for {
		f, err := received(c)
		if err != nil {
			t.Fatalf("the connection ended without a last frame: %v", err)
		}
		if g := f.GetClose(); g != nil {
			return rpcerror.FromWire(g.GetError())
		}
	}
}

// Whatever a client sends ends its connection at most, with the reason, and the
// server goes on.
func TestStrangers(t *testing.T) {
	hello := func(change func(h *wire.Handshake)) []byte {
		h := &wire.Handshake{Version: 1, Peer: "stranger", MaxMessageBytes: maxMessage}
		change(h)
		return append([]byte(wire.Preface), framed(t, &wire.Frame{Kind: &wire.Frame_Handshake{Handshake: h}}, nil)...)
	}
	handshaken := func(data ...byte) []byte { return append(hello(func(*wire.Handshake) {}), data...) }
	head := func(head, body uint32) []byte {
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, head), body)
	}
	call := &wire.Call{Seq: 1, Actor: "subject", Method: "add", BufferSizes: []uint64{1 << 60}}
	tests := []struct {
		name string
		data []byte
		code rpcerror.Code
		want string
	}{
		{"a newer version", hello(func(h *wire.Handshake) { h.Version = 2 }), rpcerror.CodeVersion,
			"the server speaks version 1 of the actor protocol, this program version 2: update the server"},
		{"an older version", hello(func(h *wire.Handshake) { h.Version = 0 }), rpcerror.CodeVersion,
			"the server speaks version 1 of the actor protocol, this program version 0: update this program"},
		{"another namespace", hello(func(h *wire.Handshake) { h.Namespace = "elsewhere" }), rpcerror.CodeDenied, "peers of another namespace are not served"},
		{"no name", hello(func(h *wire.Handshake) { h.Peer = "" }), rpcerror.CodeMalformed, ""},
		{"a long name", hello(func(h *wire.Handshake) { h.Peer = strings.Repeat("x", 1000) }), rpcerror.CodeMalformed, ""},
		{"no message", handshaken(append(head(4, 0), 0xff, 0xff, 0xff, 0xff)...), rpcerror.CodeMalformed, ""},
		{"a huge head", handshaken(head(1<<31, 0)...), "", ""}, // too large or malformed
		{"buffers without bytes", handshaken(framed(t, &wire.Frame{Kind: &wire.Frame_Call{Call: call}}, nil)...), rpcerror.CodeMalformed, ""},
	}
	for _, served := range languages() {
		t.Run("to "+string(served), func(t *testing.T) {
			s := startServer(t, served, 0)
			for _, test := range tests {
				t.Run(test.name, func(t *testing.T) {
					c := dial(t, s)
					if _, err := c.Write(test.data); err != nil {
						t.Fatal(err)
					}
					e := closeError(t, c)
					if test.code != "" && e.Code != test.code || test.want != "" && e.Message != test.want {
						t.Errorf("got %s %q\nwant %s %q", e.Code, e.Message, test.code, test.want)
					}
				})
			}
			if got := total(t, newCaller(t, golang), s.address); got != 0 {
				t.Errorf("the total is %d, want 0", got)
			}
		})
	}
}

// A client of another namespace gets nothing from a server with an identity, by any
// of its protocols: no call, no list, no gRPC, and of HTTP only the probes, plain, from this machine.
func TestStrangersOfAnotherNamespace(t *testing.T) {
	mine, yours := identityFile(t, "across"), identityFile(t, "elsewhere")
	id, err := actorrpc.LoadIdentity(mine)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := tls.LoadX509KeyPair(yours, yours)
	if err != nil {
		t.Fatal(err)
	}
	own := id.ClientTLS()
	certificate, err := own.GetClientCertificate(&tls.CertificateRequestInfo{})
	if err != nil {
		t.Fatal(err)
	}
	copied := *certificate // the right certificate, which all can see, without its key
	copied.PrivateKey = foreign.PrivateKey
	old := own.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	with := func(certificates ...tls.Certificate) *tls.Config {
		return &tls.Config{InsecureSkipVerify: true, Certificates: certificates, NextProtos: []string{"fray-actor/1", "h2"}}
	}
	unknown := own.Clone()
	unknown.NextProtos = []string{"nothing/1"}
	greetings := map[string]string{
		"frames": wire.Preface + string(framed(t, &wire.Frame{Kind: &wire.Frame_Handshake{Handshake: &wire.Handshake{Version: 1, Peer: "p"}}}, nil)),
		"gRPC":   "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
		"HTTP":   "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
	}
	for _, served := range languages() {
		t.Run("to "+string(served), func(t *testing.T) {
			s := startServer(t, served, 0, "FRAY_ACTOR_IDENTITY="+mine)
			for name, config := range map[string]*tls.Config{
				"no certificate": with(), "another's certificate": with(foreign), "without the key": with(copied), "TLS 1.2": old, "no protocol in common": unknown,
			} {
				for protocol, greeting := range greetings {
					c := tls.Client(dial(t, s), config)
					_, err := io.WriteString(c, greeting)
					var got []byte
					if err == nil {
						got, err = io.ReadAll(io.LimitReader(c, 1))
					}
					if name == "no protocol in common" && served == python { // OpenSSL goes on without: the namespace is proven all the same
						continue
					}
					var waited net.Error // until the deadline: nothing refused it
					if len(got) > 0 || errors.As(err, &waited) && waited.Timeout() {
						t.Errorf("%s, %s: got %q, %v, want that it is refused", name, protocol, got, err)
					}
				}
			}
			c := tls.Client(dial(t, s), own)
			if _, err := io.WriteString(c, greetings["frames"]); err != nil {
				t.Fatal(err)
			}
			if _, err := received(c); err != nil {
				t.Errorf("with the right certificate: %v, want a frame", err)
			}
			refusesPlain(t, s, greetings)
			if a := newCaller(t, golang).do(t, order{Do: "call", Address: s.address, Identity: mine, Method: "total", Args: "[[],{}]"}); a.Value != "0" {
				t.Errorf("got %s, want 0 and that the server goes on", a)
			}
		})
	}
}

// refusesPlain fails unless plain text gets a rejection at most, and the probes from this machine.
func refusesPlain(t *testing.T, s *server, greetings map[string]string) {
	t.Helper()
	c := dial(t, s)
	if _, err := io.WriteString(c, greetings["frames"]); err != nil {
		t.Fatal(err)
	}
	if e := closeError(t, c); e.Code != rpcerror.CodeDenied || !strings.HasPrefix(e.Message, "peers of another namespace are not served") {
		t.Errorf("plain frames: got %v, want that they are denied", e)
	}
	c = dial(t, s)
	if _, err := io.WriteString(c, greetings["gRPC"]); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); len(got) > 0 && !strings.Contains(string(got), "peers of another namespace are not served") {
		t.Errorf("plain gRPC: got %q, %v, want the end", got, err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, want := range map[string]int{"/readyz": 200, "/metrics": 200, "/": 404, "/fray.actor.v1.Actors/Invoke": 404} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: got status %d, want %d", path, resp.StatusCode, want)
		}
	}
	resp, err := client.Post("http://"+s.address+"/fray.actor.v1.Actors/Invoke", "application/json", strings.NewReader("{}"))
	if err == nil {
		resp.Body.Close()
		if resp.StatusCode < 400 {
			t.Errorf("POST: got status %d, want none or a rejection", resp.StatusCode)
		}
	}
}
