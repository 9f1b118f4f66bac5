package release

import (
	"bytes"
	"compress/gzip"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/fray-ml/fray/state/store"
)

// AgentBinaryVariable names the program that hosts in the cloud run.
const AgentBinaryVariable = "FRAY_AGENT_BINARY"

// agentArch is what hosts in the cloud are.
const agentArch = "amd64"

// AgentProgram is the file of the program that hosts on other machines run.
func AgentProgram() (string, error) {
	file, err := findAgentBinary()
	if err == nil {
		err = checkAgentBinary(file)
	}
	if err != nil {
		return "", fmt.Errorf("find the program for the hosts: %w", err)
	}
	return file, nil
}

// AgentBinary brings the program that hosts in the cloud run into the store,
// compressed and under the SHA-256 of that, and returns it. One that is there
// is not sent again, and one that was compressed before is not compressed again.
func AgentBinary(ctx context.Context, s store.Store, report UploadReporter) (sum string, err error) {
	file, err := AgentProgram()
	if err != nil {
		return "", err
	}
	packed, err := userAgentCache().packed(file)
	if err != nil {
		return "", fmt.Errorf("pack the program for the hosts: %w", err)
	}
	there, err := s.List(ctx, store.BundleKey(packed.sum))
	if err != nil {
		return "", fmt.Errorf("ship the program for the hosts: %w", err)
	}
	if len(there) > 0 {
		return packed.sum, nil
	}
	content := &uploadReader{Reader: bytes.NewReader(packed.data), report: report}
	if report != nil {
		report(s.Location(), 0, int64(len(packed.data)))
	}
	if err := s.Upload(ctx, store.BundleKey(packed.sum), content); err != nil {
		return "", fmt.Errorf("ship the program for the hosts: %w", err)
	}
	return packed.sum, nil
}

// UploadReporter hears of the upload of the program: of its begin, with sent 0, and
// how far it is. nil: it is not reported.
type UploadReporter func(to string, sent, size int64)

// uploadReader reports how much of it was read.
type uploadReader struct {
	*bytes.Reader
	report UploadReporter
}

func (r *uploadReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.report != nil && n > 0 {
		r.report("", r.Size()-int64(r.Len()), r.Size())
	}
	return n, err
}

// WriteTo would pass by Read.
func (r *uploadReader) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{r})
}

// findAgentBinary is the program that was asked for, this one where it would
// run on the hosts, or the one that a release puts beside it.
func findAgentBinary() (string, error) {
	if file := os.Getenv(AgentBinaryVariable); file != "" {
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
	return "", fmt.Errorf("hosts on other machines run linux/%s and this fray is for %s/%s; put fray-linux-%s of the same release beside %s, or name it in %s (make release builds it)",
		agentArch, runtime.GOOS, runtime.GOARCH, agentArch, self, AgentBinaryVariable)
}

// checkAgentBinary rejects what hosts could not run.
func checkAgentBinary(file string) error {
	f, err := elf.Open(file)
	if _, ok := errors.AsType[*elf.FormatError](err); ok || errors.Is(err, io.EOF) {
		return fmt.Errorf("%s is no program for linux; name one for linux/%s in %s", file, agentArch, AgentBinaryVariable)
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	if f.Machine != elf.EM_X86_64 {
		return fmt.Errorf("%s is for another machine (%s); name one for linux/%s in %s", file, f.Machine, agentArch, AgentBinaryVariable)
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
