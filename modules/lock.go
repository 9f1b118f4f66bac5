package modules

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	goversion "github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/fray-ml/fray/durable"
)

// LockFile is the name of the lock file, beside the configuration.
const LockFile = ".fray.lock.hcl"

const lockHeader = `# Written by fray get: the versions of the modules that are archives, and the
# hashes of what they hold. Commit it with the configuration, and leave it to
# fray get to change it.
`

// Locked is one version of a module in the lock file.
type Locked struct {
	Source      string   `hcl:"source,label"` // without a directory within
	Version     string   `hcl:"version"`
	Constraints []string `hcl:"constraints"` // of the calls that it serves; anyVersion for none
	Archive     string   `hcl:"archive"`     // hash of the archive as it is in the registry
	Files       string   `hcl:"files"`       // hash of the files in it
}

func (l Locked) String() string { return l.Source + " " + l.Version }

// lock is the content of a lock file, sorted by source and version.
type lock []Locked

// readLock reads the lock file of a configuration. None is an empty one.
func readLock(root string) (lock, error) {
	data, err := os.ReadFile(filepath.Join(root, LockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the lock file: %w", err)
	}
	l, err := decodeLock(data)
	if err != nil {
		return nil, fmt.Errorf("read the lock file: %w; take it from version control again, or remove it and run fray get, which trusts what it then finds", err)
	}
	return l, nil
}

func decodeLock(data []byte) (lock, error) {
	file, diags := hclsyntax.ParseConfig(data, LockFile, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, diags
	}
	var content struct {
		Modules []Locked `hcl:"module,block"`
	}
	if diags := gohcl.DecodeBody(file.Body, nil, &content); diags.HasErrors() {
		return nil, diags
	}
	l := lock(content.Modules)
	l.sort()
	for i, one := range l {
		src, err := ParseSource(one.Source)
		if err != nil {
			return nil, err
		}
		if _, err := parseVersion(one.Version); err != nil {
			return nil, fmt.Errorf("%s: %w", one.Source, err)
		}
		switch {
		case src.Sub != "":
			return nil, fmt.Errorf("%s: it names a directory within the archive", one.Source)
		case !isHash(one.Archive) || !isHash(one.Files):
			return nil, fmt.Errorf("%s: a hash is sha256: and 64 hexadecimal digits", one)
		case i > 0 && one.key() == l[i-1].key():
			return nil, fmt.Errorf("%s stands twice", one)
		}
	}
	return l, nil
}

func (l Locked) key() [2]string { return [2]string{l.Source, l.Version} }

func (l lock) sort() {
	slices.SortFunc(l, func(a, b Locked) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), compareVersions(a.Version, b.Version))
	})
}

func compareVersions(a, b string) int {
	x, errX := goversion.NewSemver(a)
	y, errY := goversion.NewSemver(b)
	if errX != nil || errY != nil {
		return cmp.Compare(a, b)
	}
	return x.Compare(y)
}

// encode is the lock file.
func (l lock) encode() []byte {
	file := hclwrite.NewEmptyFile()
	file.Body().AppendUnstructuredTokens(hclwrite.Tokens{{Type: hclsyntax.TokenComment, Bytes: []byte(lockHeader)}})
	for _, one := range l {
		file.Body().AppendNewline()
		file.Body().AppendBlock(gohcl.EncodeAsBlock(&one, "module"))
	}
	return hclwrite.Format(file.Bytes())
}

// serving is the version of a source that a call gets: that which was chosen
// for a call like it, so that what is chosen for others does not move it; for a
// new call the newest that fits.
func (l lock) serving(source string, c constraint) (Locked, bool) {
	var newest Locked
	for _, one := range slices.Backward(l) {
		v, err := parseVersion(one.Version)
		if err != nil || one.Source != source || !c.allows(v) {
			continue
		}
		if slices.Contains(one.Constraints, c.String()) {
			return one, true
		}
		if newest.Version == "" {
			newest = one
		}
	}
	return newest, newest.Version != ""
}

// of are the locked versions of a source.
func (l lock) of(source string) lock {
	return slices.DeleteFunc(slices.Clone(l), func(one Locked) bool { return one.Source != source })
}

// find is the entry of one version.
func (l lock) find(source, version string) (Locked, bool) {
	i := slices.IndexFunc(l, func(one Locked) bool { return one.Source == source && one.Version == version })
	if i < 0 {
		return Locked{}, false
	}
	return l[i], true
}

// writeLock replaces the lock file of a configuration, or removes it when there
// is nothing to lock.
func writeLock(root string, l lock) error {
	path := filepath.Join(root, LockFile)
	if len(l) == 0 {
		return os.Remove(path)
	}
	if err := durable.WriteFile(path, l.encode(), 0o644); err != nil {
		return fmt.Errorf("write the lock file: %w", withRemedy(err))
	}
	return nil
}

// difference is in what the next lock file differs.
func (l lock) difference(next lock) string {
	for _, one := range next {
		was, ok := l.find(one.Source, one.Version)
		switch {
		case !ok:
			return fmt.Sprintf("%s is used and not in it", one)
		case !slices.Equal(was.Constraints, one.Constraints):
			return fmt.Sprintf("the constraints of %s have changed", one)
		}
	}
	for _, one := range l {
		if _, ok := next.find(one.Source, one.Version); !ok {
			return fmt.Sprintf("%s is in it and not used", one)
		}
	}
	return "it is written in another way"
}
