package wire

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// ends are both ends of a connection whose writes wait for their reads.
func ends(t *testing.T) (ours, theirs *Conn) {
	t.Helper()
	a, b := net.Pipe()
	t.Cleanup(func() { a.Close(); b.Close() })
	return NewConn(a, MaxFrame), NewConn(b, MaxFrame)
}

// A small frame waits for one part of the large payloads that are on their way, whatever their size, and these take turns.
func TestPartsLetOthersThrough(t *testing.T) {
	ours, theirs := ends(t)
	first, second := bytes.Repeat([]byte("a"), 5<<20), bytes.Repeat([]byte("b"), 3<<20+1)
	receipt := &Receipt{}
	theirs.Expect(1, 5<<20, time.Hour, func() {})
	theirs.Expect(2, 3<<20+1, time.Hour, func() {})
	ours.Transfer(1, [][]byte{first[:100], nil, first[100:]}, nil)
	ours.Transfer(2, [][]byte{second}, receipt)
	var order []uint64
	got := map[uint64][]byte{}
	pinged := false
	for len(got) < 2 {
		f, payload, err := theirs.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if f.GetPing() != nil {
			order = append(order, 0)
			continue
		}
		seq := f.GetPart().GetSeq()
		order = append(order, seq)
		if len(payload) > 0 {
			got[seq] = payload[0]
		}
		if !pinged {
			pinged = true
			if err := ours.Queue(ping(1), nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		if receipt.MayHaveArrived() && len(order) < 6 {
			t.Fatalf("the second payload counts as arrived after %v", order)
		}
	}
	if !bytes.Equal(got[1], first) || !bytes.Equal(got[2], second) || !receipt.MayHaveArrived() {
		t.Error("what arrived is not what was sent")
	}
	if at := slices.Index(order, 0); at < 0 || at > 2 {
		t.Errorf("order %v, want the ping (0) after at most two parts", order)
	}
	want := slices.DeleteFunc(order, func(seq uint64) bool { return seq == 0 })
	if !slices.Equal(want[:6], []uint64{1, 2, 1, 2, 1, 2}) && !slices.Equal(want[:6], []uint64{1, 1, 2, 1, 2, 1}) {
		t.Errorf("order %v, want that the two take turns", order)
	}
}

func TestCutTransfer(t *testing.T) {
	ours, theirs := ends(t)
	receipt := &Receipt{}
	ours.Transfer(1, [][]byte{make([]byte, 5<<20)}, receipt)
	if _, _, err := theirs.Receive(); err != nil { // it is not expected, so it is skipped
		t.Fatal(err)
	}
	if !ours.Cut(1) || ours.Cut(1) {
		t.Error("a transfer is cut more or less than once")
	}
	if err := ours.Queue(ping(7), nil, nil); err != nil {
		t.Fatal(err)
	}
	go func() { _ = ours.Flush() }()
	for {
		f, _, err := theirs.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if f.GetPing().GetId() == 7 {
			break
		}
	}
	if receipt.MayHaveArrived() {
		t.Error("a payload that was cut counts as arrived")
	}
}

// Parts that are more than was announced, or so small that they would never end, are of no peer of ours.
func TestHostileParts(t *testing.T) {
	for name, sizes := range map[string][]int{
		"more than was announced": {1 << 20, 1<<20 + 1},
		"too small":               {1 << 20, 100},
		"empty":                   {0},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := ends(t)
			theirs.Expect(1, 2<<20, time.Hour, func() {})
			go func() {
				for _, n := range sizes {
					out, _ := pack(&Frame{Kind: &Frame_Part{Part: &Part{Seq: 1}}}, [][]byte{make([]byte, n)})
					_, _ = out.bytes.WriteTo(ours.net)
				}
			}()
			for range sizes {
				_, _, err := theirs.Receive()
				if _, ok := errors.AsType[*MalformedError](err); ok {
					return
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			t.Error("the parts were taken")
		})
	}
	for name, test := range map[string]struct {
		size, first uint64
		buffers     []uint64
	}{
		"less than it carries":           {10, 11, nil},
		"buffers that are more":          {10, 5, []uint64{6}},
		"buffers that are less":          {10, 5, []uint64{4}},
		"buffers beyond all numbers":     {10, 5, []uint64{6, ^uint64(0)}},
		"a first piece beyond all":       {10, ^uint64(0), nil},
		"bytes that belong to no buffer": {10, 5, nil},
	} {
		if CheckTransfer(test.size, test.first, test.buffers) == nil {
			t.Errorf("%s: it is accepted", name)
		}
	}
}

func TestStalledTransfer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := ends(t)
		var stalled atomic.Bool
		theirs.Expect(1, 3<<20, time.Minute, func() { stalled.Store(true) })
		time.Sleep(50 * time.Second)
		go ours.Transfer(1, [][]byte{make([]byte, 3<<20)}, nil)
		if _, _, err := theirs.Receive(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Second)
		synctest.Wait()
		if stalled.Load() {
			t.Error("it counts as stalled within a minute after a part")
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if !stalled.Load() {
			t.Error("it does not count as stalled")
		}
		theirs.Forget(1)
	})
}

// More than fits waits, in order; what is larger than all of it gets it alone.
func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(10)
		var mu sync.Mutex
		var order []int
		reserve := func(n int, size uint64) *Reservation {
			r := m.Reserve(size, func() {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, n)
			})
			synctest.Wait()
			return r
		}
		want := func(used uint64, granted ...int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(order, granted) || m.Used() != used {
				t.Errorf("granted %v with %d in use, want %v with %d", order, m.Used(), granted, used)
			}
		}
		one, two, three, four := reserve(1, 6), reserve(2, 6), reserve(3, 50), reserve(4, 1)
		want(6, 1)
		one.Release()
		one.Release()
		want(6, 1, 2)
		two.Release()
		want(50, 1, 2, 3)
		five := reserve(5, 1)
		five.Release()
		three.Release()
		want(1, 1, 2, 3, 4)
		four.Release()
		want(0, 1, 2, 3, 4)
		(*Reservation)(nil).Release()
	})
}
