package release

import (
	"bytes"
	"compress/gzip"
	"context"
	"debug/elf"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// uploads counts what is sent to a store.
type uploads struct {
	store.Store
	n int
}

func (u *uploads) Upload(ctx context.Context, key string, content io.Reader) error {
	u.n++
	return u.Store.Upload(ctx, key, content)
}

// elfProgram is as much of a program for linux as can be told from outside.
func elfProgram(t *testing.T, machine elf.Machine) string {
	t.Helper()
	h := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT), Ehsize: 64, Phentsize: 56, Shentsize: 64,
	}
	copy(h.Ident[:], []byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)})
	var data bytes.Buffer
	if err := binary.Write(&data, binary.LittleEndian, h); err != nil {
		t.Fatal(err)
	}
	return fileOf(t, data.String())
}

func fileOf(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fray-linux-amd64")
	if err := os.WriteFile(file, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAgentBinary(t *testing.T) {
	dir, err := store.CreateDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	s := &uploads{Store: dir}
	file := elfProgram(t, elf.EM_X86_64)
	t.Setenv(AgentBinaryVariable, file)
	first, err := AgentBinary(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := AgentBinary(t.Context(), s, nil)
	if err != nil || second != first || s.n != 1 {
		t.Errorf("the second time: %s, %v after %d uploads; want %s after 1", second, err, s.n, first)
	}
	blob, err := dir.Open(t.Context(), store.BundleKey(first))
	if err != nil {
		t.Fatal(err)
	}
	defer blob.Close()
	unpacked, err := gzip.NewReader(blob)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(unpacked)
	want, readErr := os.ReadFile(file)
	if err != nil || readErr != nil || !bytes.Equal(got, want) {
		t.Errorf("the store has %q, %v, %v; want %q", got, err, readErr, want)
	}
}

func TestAgentBinaryThatHostsCannotRun(t *testing.T) {
	dir, err := store.CreateDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &uploads{Store: dir}
	for name, test := range map[string]struct{ file, want string }{
		"another machine": {elfProgram(t, elf.EM_AARCH64), "is for another machine (EM_AARCH64); name one for linux/amd64 in FRAY_AGENT_BINARY"},
		"no program":      {fileOf(t, "#!/bin/sh\n"), "is no program for linux; name one for linux/amd64 in FRAY_AGENT_BINARY"},
		"empty":           {fileOf(t, ""), "is no program for linux"},
		"not there":       {filepath.Join(t.TempDir(), "fray"), "no such file"},
	} {
		t.Setenv(AgentBinaryVariable, test.file)
		if _, err := AgentBinary(t.Context(), s, nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, test.want)
		}
	}
	if s.n > 0 {
		t.Errorf("%d uploads of what cannot run", s.n)
	}
}

// A program is compressed once for each version, and what is damaged of the cache
// is made anew.
func TestAgentCache(t *testing.T) {
	dir := t.TempDir()
	cache := agentCache(filepath.Join(dir, "agents"))
	file := fileOf(t, strings.Repeat("program ", 1000))
	first, err := cache.packed(file)
	if err != nil {
		t.Fatal(err)
	}
	kept := cache.files("*.gz")
	if len(kept) != 1 || sumOf(first.data) != first.sum {
		t.Fatalf("kept %v of a program with the digest %s", kept, first.sum)
	}
	before, err := os.Stat(kept[0])
	if err != nil {
		t.Fatal(err)
	}
	again, err := cache.packed(file)
	if err != nil || again.sum != first.sum {
		t.Fatalf("got %s, %v; want %s", again.sum, err, first.sum)
	}
	if after, err := os.Stat(kept[0]); err != nil || !os.SameFile(before, after) {
		t.Errorf("it was compressed again (%v)", err)
	}
	if err := os.WriteFile(kept[0], []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err = cache.packed(file); err != nil || again.sum != first.sum || sumOf(again.data) != first.sum {
		t.Errorf("after damage: got %s, %v; want %s", again.sum, err, first.sum)
	}
	for _, text := range []string{"a", "b", "c", "d", "e"} {
		if _, err := cache.packed(fileOf(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	if kept := cache.files("*.gz"); len(kept) != cachedAgents {
		t.Errorf("it keeps %d programs, want %d", len(kept), cachedAgents)
	}
	if _, err := agentCache("").packed(file); err != nil {
		t.Errorf("without a cache: %v", err)
	}
}

// What is uploaded is announced, once, with its size.
func TestAgentUploadIsAnnounced(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv(AgentBinaryVariable, elfProgram(t, elf.EM_X86_64))
	s := storetest.NewMemory()
	var began []int64
	var last int64
	tell := func(to string, sent, size int64) {
		if sent == 0 {
			began = append(began, size)
		}
		last = sent
	}
	for range 2 {
		if _, err := AgentBinary(t.Context(), s, tell); err != nil {
			t.Fatal(err)
		}
	}
	if len(began) != 1 || last != began[0] {
		t.Errorf("announced %v and told of %d bytes at last, want one upload to its end", began, last)
	}
}
