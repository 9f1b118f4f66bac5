package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/fray-ml/fray/state/store"
)

// agentBinaryVariable names the program that hosts in the cloud run.
const agentBinaryVariable = "FRAY_AGENT_BINARY"

// agentArch is what hosts in the cloud are.
const agentArch = "amd64"

// agentBinary brings the program that hosts in the cloud run into the store,
// compressed and under the SHA-256 of that, and returns it. One that is there
// is not sent again.
func agentBinary(ctx context.Context, s store.Store) (sum string, err error) {
	file, err := findAgentBinary()
	if err == nil {
		err = checkAgentBinary(file)
	}
	if err != nil {
		return "", fmt.Errorf("find the program for the hosts: %w", err)
	}
	packed, err := compressFile(file)
	if err != nil {
		return "", fmt.Errorf("pack the program for the hosts: %w", err)
	}
	digest := sha256.Sum256(packed)
	sum = hex.EncodeToString(digest[:])
	there, err := s.List(ctx, store.BundleKey(sum))
	if err != nil {
		return "", fmt.Errorf("ship the program for the hosts: %w", err)
	}
	if len(there) > 0 {
		return sum, nil
	}
	if err := s.Upload(ctx, store.BundleKey(sum), bytes.NewReader(packed)); err != nil {
		return "", fmt.Errorf("ship the program for the hosts: %w", err)
	}
	return sum, nil
}

// findAgentBinary is the program that was asked for, this one where it would
// run on the hosts, or the one that a release puts beside it.
func findAgentBinary() (string, error) {
	if file := os.Getenv(agentBinaryVariable); file != "" {
		return file, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if runtime.GOOS == "linux" && runtime.GOARCH == agentArch {
		return self, nil
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", err
	}
	dir := filepath.Dir(self)
	names := []string{"fray-linux-" + agentArch, filepath.Join("dist", "fray-linux-"+agentArch)}
	released := fmt.Sprintf("fray_%s_linux_%s", version, agentArch)
	names = append(names, released, filepath.Join("dist", released))
	for _, name := range names {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return file, nil
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("hosts on Google Cloud run linux/%s and this fray is for %s/%s; put fray-linux-%s of the same release beside %s, or name it in %s (make release builds it)",
		agentArch, runtime.GOOS, runtime.GOARCH, agentArch, self, agentBinaryVariable)
}

// checkAgentBinary refuses what hosts could not run.
func checkAgentBinary(file string) error {
	f, err := elf.Open(file)
	if _, ok := errors.AsType[*elf.FormatError](err); ok || errors.Is(err, io.EOF) {
		return fmt.Errorf("%s is no program for linux; name one for linux/%s in %s", file, agentArch, agentBinaryVariable)
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	if f.Machine != elf.EM_X86_64 {
		return fmt.Errorf("%s is for another machine (%s); name one for linux/%s in %s", file, f.Machine, agentArch, agentBinaryVariable)
	}
	return nil
}

// compressFile is the content of a file in gzip's format, the same for the same
// content whatever the file is called.
func compressFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := io.Copy(w, f); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}
