package release

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/fray-ml/fray/durable"
)

// packedAgent is a program as it is shipped: compressed, with the SHA-256 of that.
type packedAgent struct {
	sum  string
	data []byte
}

// agentCache keeps programs compressed, since that takes ten seconds: a directory
// of the user with a file RAW-PACKED.gz for each, named by the SHA-256 of the
// program and of its compressed form. "" keeps nothing.
type agentCache string

// cachedAgents is how many programs are kept.
const cachedAgents = 4

// userAgentCache is that of this user; there is none where no directory can be found.
func userAgentCache() agentCache {
	dir, err := CacheDir()
	if err != nil {
		return ""
	}
	return agentCache(filepath.Join(dir, "agents"))
}

// packed is a program compressed, as it was kept or made now. What cannot be read
// or written of the cache costs time and nothing else.
func (c agentCache) packed(file string) (packedAgent, error) {
	raw, err := sumOfFile(file)
	if err != nil {
		return packedAgent{}, err
	}
	if kept, ok := c.read(raw); ok {
		return kept, nil
	}
	data, err := compressFile(file)
	if err != nil {
		return packedAgent{}, err
	}
	made := packedAgent{sum: sumOf(data), data: data}
	if again, err := sumOfFile(file); err == nil && again == raw { // else it was replaced meanwhile
		c.write(raw, made)
	}
	return made, nil
}

// read is what is kept of a program, if that is what its name claims.
func (c agentCache) read(raw string) (packedAgent, bool) {
	for _, file := range c.files(raw + "-*.gz") {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		kept := packedAgent{sum: sumOf(data), data: data}
		if filepath.Base(file) == raw+"-"+kept.sum+".gz" {
			return kept, true
		}
		_ = os.Remove(file) // damaged: it is made anew
	}
	return packedAgent{}, false
}

func (c agentCache) write(raw string, made packedAgent) {
	if c == "" || os.MkdirAll(string(c), 0o700) != nil {
		return
	}
	if durable.Replace(filepath.Join(string(c), raw+"-"+made.sum+".gz"), made.data, 0o600) != nil {
		return
	}
	c.prune()
}

// prune keeps the newest few.
func (c agentCache) prune() {
	for {
		files := c.files("*-*.gz")
		if len(files) <= cachedAgents {
			return
		}
		oldest, err := oldestOf(files)
		if err != nil || os.Remove(oldest) != nil {
			return
		}
	}
}

func oldestOf(files []string) (string, error) {
	var oldest os.FileInfo
	var name string
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return "", err
		}
		if oldest == nil || info.ModTime().Before(oldest.ModTime()) {
			oldest, name = info, file
		}
	}
	return name, nil
}

func (c agentCache) files(pattern string) []string {
	if c == "" {
		return nil
	}
	entries, err := os.ReadDir(string(c))
	if err != nil {
		return nil
	}
	var found []string
	for _, e := range entries {
		if ok, err := filepath.Match(pattern, e.Name()); err == nil && ok && !strings.HasPrefix(e.Name(), ".") {
			found = append(found, filepath.Join(string(c), e.Name()))
		}
	}
	return found
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func sumOfFile(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
