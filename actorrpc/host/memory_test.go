//go:build !race

package host

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/fray-ml/fray/actorrpc/wire"
)

// limit is the declared one of the servers that are measured, and of the clients.
const memoryLimit = wire.MaxFrame

// envMeasured has TestMain be a process that is measured instead of running tests.
const envMeasured = "FRAY_TEST_MEASURED"

// taker is an actor whose methods take what is dear to hold.
type taker struct{}

// wide is what a one-byte map can become.
type wide struct {
	Rows [32]map[string]int
	Name string
}

func (taker) Any(v any) string                      { return fmt.Sprintf("%T", v) }
func (taker) Wides(v []wide) int                    { return len(v) }
func (taker) Pages(v [][]wide) int                  { return len(v) }
func (taker) Pointers(v []*wide) int                { return len(v) }
func (taker) Ints(v []int) int                      { return len(v) }
func (taker) Maps(v []map[string]int) int           { return len(v) }
func (taker) Many(v ...wide) int                    { return len(v) }
func (taker) Lots(v ...int) int                     { return len(v) }
func (taker) Named(v map[string]map[string]any) int { return len(v) }

// measured serves the actor until its input ends, and prints its peak of memory in bytes.
func measured() {
	s, err := New(Config{MaxMessageBytes: memoryLimit, Keepalive: 5 * time.Minute, Patience: 5 * time.Minute})
	if err == nil {
		_, err = s.Register("taker", taker{}, Options{})
	}
	if err == nil {
		err = s.Start(context.Background())
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.Address())
	_, _ = io.Copy(io.Discard, os.Stdin)
	fmt.Println(peakMemory())
	os.Exit(0)
}

func peakMemory() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	line, _, _ := strings.Cut(rest, "kB")
	n, _ := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	return n << 10
}

// peakOf is the peak of a server's memory in bytes while f speaks with it. Its collector is told early, so that the peak is
// what the server holds, and not when a busy machine had time to collect what it held before.
func peakOf(t *testing.T, f func(address string)) int64 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), envMeasured+"=1", fmt.Sprintf("GOMEMLIMIT=%d", 2*memoryLimit))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	f(lines.Text())
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	lines.Scan()
	peak, err := strconv.ParseInt(lines.Text(), 10, 64)
	if err != nil {
		t.Errorf("the server's last line: %q", lines.Text())
	}
	_ = cmd.Wait()
	return peak
}

// hostile is a message whose values are dear to hold.
type hostile struct {
	name   string
	method string
	codec  wire.Codec
	args   func(room int) []byte
	code   wire.Code // of the reply
}

// list32 and map32 are the heads of a list and a map.
func list32(n int) []byte { return binary.BigEndian.AppendUint32([]byte{0xdd}, uint32(n)) }
func map32(n int) []byte  { return binary.BigEndian.AppendUint32([]byte{0xdf}, uint32(n)) }

// one is arguments of one list of as many elements as there is room for.
func one(element string) func(room int) []byte {
	return func(room int) []byte {
		n := (room - 16) / len(element)
		return slicesOf([]byte{0x92, 0x91}, list32(n), bytes.Repeat([]byte(element), n), []byte{0x80})
	}
}

// pages is one list of lists, none of which is large.
func pages(element string) func(room int) []byte {
	const rows = 1000
	return one(string(binary.BigEndian.AppendUint16([]byte{0xdc}, rows)) + strings.Repeat(element, rows))
}

// positional is arguments of as many elements as there is room for.
func positional(element string) func(room int) []byte {
	return func(room int) []byte {
		n := (room - 16) / len(element)
		return slicesOf([]byte{0x92}, list32(n), bytes.Repeat([]byte(element), n), []byte{0x80})
	}
}

func slicesOf(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// keyed is arguments of one map with a key of its own for each row.
func keyed(text bool, value string) func(room int) []byte {
	return func(room int) []byte {
		row := 5 + len(value)
		n := (room - 16) / row
		b := append([]byte{0x92, 0x91}, map32(n)...)
		for i := range n {
			if text {
				b = append(b, 0xa4, byte(i&63)+32, byte(i>>6&63)+32, byte(i>>12&63)+32, byte(i>>18&63)+32)
			} else {
				b = binary.BigEndian.AppendUint32(append(b, 0xce), uint32(i))
			}
			b = append(b, value...)
		}
		return append(b, 0x80)
	}
}

func tenRows() string {
	var b strings.Builder
	for i := range 10 {
		b.WriteString("\xa1" + string(rune('a'+i)) + "\x00")
	}
	return b.String()
}

func hostileMessages() []hostile {
	const m, j = wire.Codec_CODEC_MSGPACK, wire.Codec_CODEC_JSON
	const large = wire.Code_CODE_TOO_LARGE
	text := func(head, element, tail string) func(int) []byte {
		return func(room int) []byte {
			n := (room - len(head) - len(tail) - 1) / (len(element) + 1)
			return slicesOf([]byte(head), bytes.Repeat([]byte(element+","), n), []byte(element), []byte(tail))
		}
	}
	return []hostile{
		{"empty maps", "any", m, one("\x80"), large},
		{"empty lists", "any", m, one("\x90"), large},
		{"maps of one", "any", m, one("\x81\x00\x00"), large},
		{"mixed keys", "any", m, one("\x82\x00\x00\xa1a\x00"), large},
		{"lists of one", "any", m, one("\x91\xc0"), large},
		{"nils", "any", m, one("\xc0"), large},
		{"ints", "any", m, one("\xd1\x7f\xff"), large},
		{"floats", "any", m, one("\xcb\x3f\xf1\x00\x00\x00\x00\x00\x00"), large},
		{"short strings", "any", m, one("\xa2ab"), large},
		{"short bytes", "any", m, one("\xc4\x01a"), large},
		{"times", "any", m, one("\xd6\xff\x00\x00\x00\x01"), large},
		{"tiny arrays", "any", m, one("\xc7\x0a\x01\x93\xa4int8\x90\xc4\x01a"), large},
		{"actors", "any", m, one("\xd6\x02\x93\xa0\xa0\xa0"), large},
		{"pages of empty maps", "any", m, pages("\x80"), large},
		{"pages of empty lists", "any", m, pages("\x90"), large},
		{"pages of maps of one", "any", m, pages("\x81\x00\x00"), large},
		{"pages of mixed keys", "any", m, pages("\x82\x00\x00\xa1a\x00"), large},
		{"pages of nils", "any", m, pages("\xc0"), large},
		{"pages of ints", "any", m, pages("\xd1\x7f\xff"), large},
		{"pages of floats", "any", m, pages("\xcb\x3f\xf1\x00\x00\x00\x00\x00\x00"), large},
		{"pages of short strings", "any", m, pages("\xa2ab"), large},
		{"pages of strings", "any", m, pages("\xbf" + strings.Repeat("s", 31)), large},
		{"pages of tiny arrays", "any", m, pages("\xc7\x0a\x01\x93\xa4int8\x90\xc4\x01a"), large},
		{"pages of structs", "pages", m, pages("\x80"), large},
		{"maps of ten", "any", m, one("\x8a" + tenRows()), large},
		{"a map of words", "any", m, keyed(true, "\x00"), large},
		{"a map of numbers", "any", m, keyed(false, "\x00"), large},
		{"nested lists", "any", m, one(strings.Repeat("\x91", 90) + "\xc0"), large},
		{"a huge claim", "any", m, func(room int) []byte {
			return slicesOf([]byte{0x92, 0x91}, list32(room-9), make([]byte, room-9), []byte{0x80})
		}, large},
		{"claims within claims", "any", m, func(room int) []byte {
			return slicesOf([]byte{0x92, 0x91}, bytes.Repeat(list32(room/8), 90), make([]byte, room-500))
		}, large},
		{"deep", "any", m, func(room int) []byte { return bytes.Repeat([]byte{0x91}, room) }, wire.Code_CODE_BAD_ARGUMENTS},
		{"structs", "wides", m, one("\x80"), large},
		{"pointers", "pointers", m, one("\x80"), large},
		{"an array of small ints as large ones", "ints", m, func(room int) []byte {
			n := room - 40
			inner := slicesOf([]byte("\x93\xa4int8\x91\xce"), binary.BigEndian.AppendUint32(nil, uint32(n)),
				[]byte{0xc6}, binary.BigEndian.AppendUint32(nil, uint32(n)), make([]byte, n))
			return slicesOf([]byte{0x92, 0x91, 0xc9}, binary.BigEndian.AppendUint32(nil, uint32(len(inner))), []byte{1}, inner, []byte{0x80})
		}, large},
		{"typed maps", "maps", m, one("\x81\xa1a\x00"), large},
		{"typed maps of maps", "named", m, keyed(true, "\x80"), large},
		{"variadic structs", "many", m, positional("\x80"), large},
		{"variadic ints", "lots", m, positional("\x00"), large},
		{"one long string", "any", m, func(room int) []byte {
			return slicesOf([]byte{0x92, 0x91, 0xdb}, binary.BigEndian.AppendUint32(nil, uint32(room-8)), bytes.Repeat([]byte("a"), room-8), []byte{0x80})
		}, large},
		{"JSON: empty objects", "any", j, text("[[[", "{}", "]],{}]"), large},
		{"JSON: empty lists", "any", j, text("[[[", "[]", "]],{}]"), large},
		{"JSON: numbers", "any", j, text("[[[", "1", "]],{}]"), large},
		{"JSON: bytes", "any", j, func(room int) []byte {
			return slicesOf([]byte(`[[{"$bytes":"`), bytes.Repeat([]byte("AAAA"), (room-24)/4), []byte(`"}],{}]`))
		}, large},
		{"JSON: deep", "any", j, func(room int) []byte { return bytes.Repeat([]byte("["), room) }, large},
	}
}

// A message at the limit, whatever it holds, takes at most three times the limit to
// refuse, also the third of them.
func TestPeakMemoryOfHostileMessages(t *testing.T) {
	for _, h := range hostileMessages() {
		t.Run(h.name, func(t *testing.T) {
			args := h.args(memoryLimit - 256)
			peak := peakOf(t, func(address string) {
				c := dialed(t, address)
				for seq := range uint64(3) {
					call := &wire.Call{Actor: "taker", Method: h.method, Seq: seq + 1, Codec: h.codec, Args: args}
					reply := c.call(t, call)
					if got := reply.GetError(); got.GetCode() != h.code {
						t.Errorf("got %v %q, want %v", got.GetCode(), got.GetMessage(), h.code)
					}
				}
			})
			within3(t, peak)
		})
	}
}

func within3(t *testing.T, peak int64) {
	t.Helper()
	t.Logf("peak %d MiB, %.2f times the limit", peak>>20, float64(peak)/memoryLimit)
	if peak > 3*memoryLimit {
		t.Errorf("the peak is %d MiB: more than 3 times the limit of %d MiB", peak>>20, memoryLimit>>20)
	}
}

// raw sends bytes; what comes of that is seen by who receives.
func (s *speaker) raw(parts ...[]byte) {
	for _, b := range parts {
		_, _ = s.net.Write(b)
	}
}

// speaker is a client that sends frames as it likes.
type speaker struct {
	net  net.Conn
	conn *wire.Conn
}

func dialed(t *testing.T, address string) *speaker {
	t.Helper()
	raw, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	if _, err := raw.Write([]byte(wire.Preface)); err != nil {
		t.Fatal(err)
	}
	s := &speaker{raw, wire.NewConn(raw, memoryLimit)}
	hello := &wire.Handshake{Version: wire.Version, Peer: "hostile", MaxMessageBytes: memoryLimit}
	if err := s.conn.Send(&wire.Frame{Kind: &wire.Frame_Handshake{Handshake: hello}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *speaker) call(t *testing.T, call *wire.Call) *wire.Reply {
	t.Helper()
	if err := s.conn.Send(&wire.Frame{Kind: &wire.Frame_Call{Call: call}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	for {
		f, _, err := s.conn.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if reply := f.GetReply(); reply != nil {
			return reply
		}
	}
}

// The same by gRPC, whose library holds a message beside the one that is decoded.
func TestPeakMemoryOfHostileMessagesByGRPC(t *testing.T) {
	for _, h := range hostileMessages() {
		if h.name != "empty maps" && h.name != "floats" && h.name != "structs" && h.name != "one long string" && h.name != "JSON: numbers" {
			continue
		}
		t.Run(h.name, func(t *testing.T) {
			args := h.args(memoryLimit - 256)
			within3(t, peakOf(t, func(address string) {
				c := grpcTo(t, address)
				for range 3 {
					reply, err := c.Invoke(t.Context(), &wire.Call{Actor: "taker", Method: h.method, Codec: h.codec, Args: args})
					if got := reply.GetError(); err != nil || got.GetCode() != h.code {
						t.Errorf("got %v %q, %v, want %v", got.GetCode(), got.GetMessage(), err, h.code)
					}
				}
			}))
		})
	}
	t.Run("a long name", func(t *testing.T) {
		within3(t, peakOf(t, func(address string) {
			for range 3 {
				if _, err := grpcTo(t, address).ListMethods(t.Context(), &wire.ListMethodsRequest{Actor: strings.Repeat("a", memoryLimit-16)}); err == nil {
					t.Error("a name of 64 MiB was taken")
				}
			}
		}))
	})
}

func grpcTo(t *testing.T, address string) wire.ActorsClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(memoryLimit)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return wire.NewActorsClient(conn)
}

// Frames whose heads are dear to decode end the connection, or are refused.
func TestPeakMemoryOfHostileHeads(t *testing.T) {
	room := memoryLimit - 1024
	field := func(n protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), b)
	}
	for name, inner := range map[string][]byte{
		"packed sizes":    field(10, make([]byte, room)),
		"single sizes":    bytes.Repeat([]byte{10 << 3, 0}, room/2),
		"empty buffers":   bytes.Repeat([]byte{9<<3 | 2, 0}, room/2),
		"unknown fields":  bytes.Repeat([]byte{0xf8, 1, 0}, room/3),
		"one large field": field(99, make([]byte, room)),
		"a long name":     field(1, bytes.Repeat([]byte("a"), room)),
	} {
		t.Run(name, func(t *testing.T) {
			head := field(2, inner)
			within3(t, peakOf(t, func(address string) {
				for range 3 {
					c := dialed(t, address)
					prefix := binary.BigEndian.AppendUint32(nil, uint32(len(head)))
					c.raw(append(prefix, 0, 0, 0, 0), head)
					for {
						if _, _, err := c.conn.Receive(); err != nil {
							break
						}
					}
				}
			}))
		})
	}
}
