package agent

import (
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// gpuList is a flag with indices of GPUs, "0,3".
type gpuList []int

// Set reads a list.
func (l *gpuList) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is no index of a GPU", part)
		}
		*l = append(*l, n)
	}
	return nil
}

func (l *gpuList) String() string {
	parts := make([]string, 0, len(*l))
	for _, n := range *l {
		parts = append(parts, strconv.Itoa(n))
	}
	return strings.Join(parts, ",")
}

// Args are the flags of "fray agent", as providers write them.
type Args struct {
	Store     string // location
	KeyFile   string // of the stack's key, "" without secrets
	Slice     string
	Host      int
	Dir       string
	Address   string
	WorkDir   string
	CacheDir  string
	Workspace string
	Zone      string // that the host is in, "" where there are none
	Instance  string // the cloud's name for the machine, "" where it does not matter
	GPUs      []int  // of the machine that are the host's own; nil: all that its tasks ask for
	Simulated bool
	TPUNode   bool // the machine is one of a TPU node
	Metadata  bool // ask the cloud's metadata server for what is not given, and for notices
	End       bool
}

// ParseArgs reads the flags of "fray agent".
func ParseArgs(args []string) (Args, error) {
	var a Args
	f := flag.NewFlagSet("agent", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&a.Store, "store", "", "location of the stack's store")
	f.StringVar(&a.KeyFile, "key-file", "", "file with the stack's key")
	f.StringVar(&a.Slice, "slice", "", "name of the slice")
	f.IntVar(&a.Host, "host", 0, "number of the host in its slice")
	f.StringVar(&a.Dir, "dir", "", "the host's directory")
	f.StringVar(&a.Address, "address", "", "how peers reach this host")
	f.StringVar(&a.WorkDir, "work-dir", "", "where tasks without a bundle run")
	f.StringVar(&a.CacheDir, "cache-dir", "", "where uv environments are kept")
	f.StringVar(&a.Workspace, "workspace", "", "workspace that the slice is of")
	f.StringVar(&a.Zone, "zone", "", "zone that the host is in")
	f.StringVar(&a.Instance, "instance", "", "the cloud's name for the machine")
	f.Var((*gpuList)(&a.GPUs), "gpus", "the machine's GPUs that are the host's own, separated by commas")
	f.BoolVar(&a.Metadata, "metadata", false, "ask the cloud's metadata server which host this is")
	f.BoolVar(&a.Simulated, "simulated", false, "the host is a part of this machine")
	f.BoolVar(&a.TPUNode, "tpu-node", false, "the machine's metadata server describes its TPU")
	f.BoolVar(&a.End, "end", false, "end what is left on the host and exit")
	if err := f.Parse(args); err != nil {
		return Args{}, fmt.Errorf("read agent flags: %w", err)
	}
	if f.NArg() > 0 {
		return Args{}, fmt.Errorf("read agent flags: unexpected %q", f.Arg(0))
	}
	return a, nil
}

// Flags are what ParseArgs reads.
func (a Args) Flags() []string {
	flags := []string{
		"--store", a.Store, "--slice", a.Slice, "--host", strconv.Itoa(a.Host), "--dir", a.Dir, "--address", a.Address,
	}
	for _, each := range []struct{ name, value string }{
		{"--key-file", a.KeyFile}, {"--work-dir", a.WorkDir}, {"--cache-dir", a.CacheDir},
		{"--workspace", a.Workspace}, {"--zone", a.Zone}, {"--instance", a.Instance}, {"--gpus", (*gpuList)(&a.GPUs).String()},
	} {
		if each.value != "" {
			flags = append(flags, each.name, each.value)
		}
	}
	for _, each := range []struct {
		name string
		set  bool
	}{{"--simulated", a.Simulated}, {"--tpu-node", a.TPUNode}, {"--metadata", a.Metadata}, {"--end", a.End}} {
		if each.set {
			flags = append(flags, each.name)
		}
	}
	return flags
}

// Config is the part of an agent's configuration that the flags give; Store,
// Sealer, Version and Log are the caller's to fill in.
func (a Args) Config() Config {
	return Config{
		Slice:     a.Slice,
		Host:      a.Host,
		Dir:       a.Dir,
		Address:   a.Address,
		WorkDir:   a.WorkDir,
		CacheDir:  a.CacheDir,
		Workspace: a.Workspace,
		Zone:      a.Zone,
		Instance:  a.Instance,
		GPUs:      a.GPUs,
		Simulated: a.Simulated,
		TPUNode:   a.TPUNode,
		End:       a.End,
	}
}
