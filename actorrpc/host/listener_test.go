package host

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

func generalClient(t *testing.T, s *Server, secure credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+s.Address(), grpc.WithTransportCredentials(secure))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// A general client knows nothing but the address: it asks for the description of
// the service and makes a call of JSON.
func TestAGeneralClient(t *testing.T) {
	s := started(t, Config{}, map[string]any{"counter": newLesson()}, Options{})
	conn := generalClient(t, s, insecure.NewCredentials())
	invoke := describedMethod(t, conn, "fray.actor.v1.Actors", "Invoke")
	call := func(in string) string {
		t.Helper()
		req, reply := dynamicpb.NewMessage(invoke.Input()), dynamicpb.NewMessage(invoke.Output())
		if err := protojson.Unmarshal([]byte(in), req); err != nil {
			t.Fatal(err)
		}
		if err := conn.Invoke(t.Context(), "/fray.actor.v1.Actors/Invoke", req, reply); err != nil {
			t.Fatal(err)
		}
		out, err := protojson.Marshal(reply)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(out), " ", "")
	}
	// W1s1XSx7fV0= is [[5],{}], and NQ== is 5.
	if got := call(`{"actor": "counter", "method": "increment", "codec": "CODEC_JSON", "args": "W1s1XSx7fV0="}`); !strings.Contains(got, `"result":"NQ=="`) {
		t.Errorf("got %s, want the result 5", got)
	}
	if got := call(`{"actor": "counter", "method": "incremen", "codec": "CODEC_JSON", "args": "W1s1XSx7fV0="}`); !strings.Contains(got, `"CODE_UNKNOWN_METHOD"`) {
		t.Errorf("got %s, want the error", got)
	}
}

// describedMethod reads a method's description from a server's reflection.
func describedMethod(t *testing.T, conn *grpc.ClientConn, service, method string) protoreflect.MethodDescriptor {
	t.Helper()
	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := &reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: service}}
	if err := stream.Send(ask); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	for _, raw := range answer.GetFileDescriptorResponse().GetFileDescriptorProto() {
		file := &descriptorpb.FileDescriptorProto{}
		if err := proto.Unmarshal(raw, file); err != nil {
			t.Fatal(err)
		}
		set.File = append(set.File, file)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		t.Fatal(err)
	}
	found, err := files.FindDescriptorByName(protoreflect.FullName(service + "." + method))
	if err != nil {
		t.Fatal(err)
	}
	return found.(protoreflect.MethodDescriptor)
}

func TestGRPC(t *testing.T) {
	l := newLesson()
	s := started(t, Config{}, map[string]any{"counter": l}, Options{})
	client := wire.NewActorsClient(generalClient(t, s, insecure.NewCredentials()))
	data := strings.Repeat("x", 100_000)
	in, buffers := request(t, "counter", "echo", []byte(data))
	in.Buffers, in.BufferSizes = buffers, nil
	reply, err := client.Invoke(t.Context(), in)
	if err != nil || len(reply.GetBuffers()) != 1 || string(reply.GetBuffers()[0]) != data {
		t.Errorf("got %d buffers, %v", len(reply.GetBuffers()), err)
	}
	if _, err := client.ListMethods(t.Context(), &wire.ListMethodsRequest{Actor: "conter"}); status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "did you mean counter") {
		t.Errorf("got %v", err)
	}
	if m, err := client.ListMethods(t.Context(), &wire.ListMethodsRequest{Actor: "counter"}); err != nil || len(m.GetMethods()) < 5 {
		t.Errorf("got %v, %v", m, err)
	}
	if a, err := client.ListActors(t.Context(), &wire.ListActorsRequest{}); err != nil || len(a.GetActors()) != 1 || a.GetActors()[0].GetCalls() != 1 {
		t.Errorf("got %v, %v", a, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	in, _ = request(t, "counter", "wait", "x")
	done := make(chan error, 1)
	go func() {
		_, err := client.Invoke(ctx, in)
		done <- err
	}()
	next(t, l.began)
	cancel()
	if err := <-done; status.Code(err) != codes.Canceled {
		t.Errorf("got %v", err)
	}
	until(t, "the method hears of it", func() bool { return l.inside.Load() == 0 })
}

func TestHealthAndReadiness(t *testing.T) {
	l := newLesson()
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Register("counter", l, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	health := healthpb.NewHealthClient(generalClient(t, s, insecure.NewCredentials()))
	check := func(want healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		for _, service := range []string{"", "fray.actor.v1.Actors"} {
			got, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
			if err != nil || got.GetStatus() != want {
				t.Errorf("%q: got %v, %v, want %s", service, got, err, want)
			}
		}
	}
	check(healthpb.HealthCheckResponse_SERVING)
	if code, text := get(t, http.DefaultClient, "http://"+s.Address()+"/readyz"); code != 200 || text != "ready\n" {
		t.Errorf("got %d %q", code, text)
	}
	c := connect(t, s, "a")
	c.wants(1, "counter", "increment", 1)
	_ = c.fails(rpcerror.CodeApplication, "counter", "panic")
	_ = c.fails(rpcerror.CodeUnknownMethod, "counter", "made_up")
	_, text := get(t, http.DefaultClient, "http://"+s.Address()+"/metrics")
	for _, want := range []string{
		`fray_actor_calls_total{actor="counter",method="increment"} 1`,
		`fray_actor_errors_total{actor="counter",code="application",method="panic"} 1`,
		`fray_actor_errors_total{actor="counter",code="unknown_method",method=""} 1`,
		`fray_actor_call_duration_seconds_count{actor="counter",method="increment"} 1`,
		`fray_actor_connections 1`, `fray_actor_calls_pending{actor="counter"} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "made_up") {
		t.Error("a name that a caller made up is a label")
	}
	if _, err := s.Register("passing", newLesson(), Options{}); err != nil {
		t.Fatal(err)
	}
	c.wants(1, "passing", "increment", 1)
	if err := s.Unregister(t.Context(), "passing"); err != nil {
		t.Fatal(err)
	}
	if _, text := get(t, http.DefaultClient, "http://"+s.Address()+"/metrics"); strings.Contains(text, "passing") {
		t.Error("the series of an actor that is gone are still there")
	}
	seq := c.begin("counter", "wait", "x")
	next(t, l.began)
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(context.Background()) }()
	until(t, "it is not ready any more", func() bool {
		code, _ := get(t, http.DefaultClient, "http://"+s.Address()+"/readyz")
		return code == 503
	})
	check(healthpb.HealthCheckResponse_NOT_SERVING)
	close(l.gate)
	_, _ = c.result(seq)
	_ = c.closeError()
	c.net.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
}

func get(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// newIdentity is the identity of a namespace, and the certificate in it.
func newIdentity(t *testing.T) (*actorrpc.Identity, tls.Certificate) {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"fray"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})...)
	id, err := actorrpc.ParseIdentity(text)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(text, text)
	if err != nil {
		t.Fatal(err)
	}
	return id, certificate
}

func TestTLS(t *testing.T) {
	id, _ := newIdentity(t)
	foreign, certificate := newIdentity(t)
	s := started(t, Config{Identity: id, Host: "127.0.0.1"}, map[string]any{"counter": newLesson()}, Options{})
	dial := func(cfg *tls.Config) *tls.Conn { return tls.Client(dialRaw(t, s), cfg) }

	c := handshake(t, dial(id.ClientTLS()), hello("a"))
	c.wants(1, "counter", "increment", 1)
	c.wants([]byte(strings.Repeat("x", 100_000)), "counter", "echo", []byte(strings.Repeat("x", 100_000)))

	anybody := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"fray-actor/1"}}
	withForeign := anybody.Clone()
	withForeign.Certificates = []tls.Certificate{certificate}
	tests := []struct {
		name string
		cfg  *tls.Config
	}{
		{"another namespace's client", foreign.ClientTLS()},
		{"another namespace's certificate", withForeign},
		{"no certificate", anybody},
		{"an old version of TLS", &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			peer := dial(test.cfg)
			_, err := peer.Write([]byte(wire.Preface))
			if err == nil {
				_, err = io.ReadAll(peer)
			}
			if err == nil || errors.Is(err, io.EOF) {
				t.Errorf("got %v, want that the peer is refused", err)
			}
		})
	}
	t.Run("plain text", func(t *testing.T) {
		raw := dialRaw(t, s)
		if _, err := raw.Write([]byte(wire.Preface)); err != nil {
			t.Fatal(err)
		}
		plain := &client{t: t, net: raw, conn: wire.NewConn(raw, 1<<20)}
		if err := plain.closeError(); err.Code != rpcerror.CodeDenied || !strings.HasPrefix(err.Message, "peers of another namespace are not served") {
			t.Errorf("got %+v", err)
		}
	})
	t.Run("gRPC", func(t *testing.T) {
		cfg := id.ClientTLS()
		cfg.NextProtos = []string{"h2"}
		in, _ := request(t, "counter", "increment", 1)
		if _, err := wire.NewActorsClient(generalClient(t, s, credentials.NewTLS(cfg))).Invoke(t.Context(), in); err != nil {
			t.Error(err)
		}
		for name, secure := range map[string]credentials.TransportCredentials{"none": insecure.NewCredentials(), "foreign": credentials.NewTLS(withForeign)} {
			if _, err := wire.NewActorsClient(generalClient(t, s, secure)).Invoke(t.Context(), in); status.Code(err) != codes.Unavailable {
				t.Errorf("%s: got %v, want that the peer is refused", name, err)
			}
		}
	})
	t.Run("HTTP", func(t *testing.T) {
		if code, _ := get(t, http.DefaultClient, "http://"+s.Address()+"/readyz"); code != 200 {
			t.Errorf("plain, from this machine: got %d", code)
		}
		cfg := id.ClientTLS()
		cfg.NextProtos = []string{"http/1.1"}
		transport := &http.Transport{TLSClientConfig: cfg}
		defer transport.CloseIdleConnections()
		if code, _ := get(t, &http.Client{Transport: transport}, "https://"+s.Address()+"/metrics"); code != 200 {
			t.Errorf("TLS: got %d", code)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	c.wants(3, "counter", "increment", 1)
}

func TestBind(t *testing.T) {
	id, _ := newIdentity(t)
	tests := []struct {
		name, want, err string
		cfg             Config
	}{
		{"this machine only", "127.0.0.1:0", "", Config{}},
		{"all narrows to this machine", "127.0.0.1:80", "", Config{Host: "0.0.0.0", Port: 80}},
		{"all of version 6 too", "127.0.0.1:0", "", Config{Host: "::"}},
		{"another loopback address", "127.1.0.4:0", "", Config{Host: "127.1.0.4"}},
		{"others", "", "without an identity only this machine is served", Config{Host: "10.0.0.1"}},
		{"a name", "", "without an identity only this machine is served", Config{Host: "example.com"}},
		{"others, insecure", "10.0.0.1:0", "", Config{Host: "10.0.0.1", AllowInsecure: true}},
		{"all, insecure", "0.0.0.0:0", "", Config{Host: "0.0.0.0", AllowInsecure: true}},
		{"insecure says nothing of where", "127.0.0.1:0", "", Config{AllowInsecure: true}},
		{"with an identity", ":0", "", Config{Identity: id}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.cfg.bind()
			if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %q, %v; want %q, %q", got, err, test.want, test.err)
			}
		})
	}
}
