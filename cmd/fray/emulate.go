package main

import (
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	gcpemulator "github.com/fray-ml/fray/providers/gcp/emulator"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/emulator/storage"
	"github.com/fray-ml/fray/terminal"
)

func emulateCommand(a *terminal.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "emulate",
		Short: "Run an emulated cloud on this machine",
	}
	cmd.AddCommand(emulateGCPCommand(a))
	return cmd
}

// emulateFlags are the flags of fray emulate gcp.
type emulateFlags struct {
	scenario, listen, dir string
	speed                 float64
	buckets               []string
}

func emulateGCPCommand(a *terminal.Terminal) *cobra.Command {
	var flags emulateFlags
	cmd := &cobra.Command{
		Use:   "gcp",
		Short: "Run Google Cloud on this machine",
		Long: `Run the parts of Google Cloud that fray uses on this machine and on one port:
the TPU API, Compute Engine and Cloud Storage. The hosts of its slices are
processes here that run the real startup script and the real agent; there are no
TPUs in them. What is printed makes every other fray command use it:

  export FRAY_GCP_ENDPOINT=http://127.0.0.1:8470

A scenario describes the cloud: capacity, quota, preemptions, what fails
and when (docs/guides/scenario.md). Without one it is calm and has plenty. Events
can also be triggered at once:

  curl $FRAY_GCP_ENDPOINT/emulator/state
  curl -d name=NODE $FRAY_GCP_ENDPOINT/emulator/preempt
  curl -d name=NODE -d worker=2 $FRAY_GCP_ENDPOINT/emulator/kill
  curl -d name=NODE $FRAY_GCP_ENDPOINT/emulator/maintain
  curl -d zone=us-west4-a -d for=10m $FRAY_GCP_ENDPOINT/emulator/stockout
  curl -d zone=us-west4-a -d for=10m $FRAY_GCP_ENDPOINT/emulator/outage
  curl -X POST $FRAY_GCP_ENDPOINT/emulator/calm

With --speed the cloud lives faster; what runs on its hosts does not. Ctrl-C ends
it and everything on its hosts. Buckets are kept in --dir, slices are not.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return emulateGCP(a, cmd, flags)
		},
	}
	cmd.Flags().StringVar(&flags.scenario, "scenario", "", "what the cloud is like, a `FILE`")
	cmd.Flags().StringVar(&flags.listen, "listen", "127.0.0.1:8470", "serve at `HOST:PORT`; port 0 is any free one")
	cmd.Flags().Float64Var(&flags.speed, "speed", 1, "let the cloud live `N` times as fast")
	cmd.Flags().StringVar(&flags.dir, "dir", "", "keep buckets and the hosts' disks in `DIR` (default: nowhere once it ends)")
	cmd.Flags().StringArrayVar(&flags.buckets, "bucket", nil, "have a bucket `NAME`; may be repeated")
	return cmd
}

func emulateGCP(a *terminal.Terminal, cmd *cobra.Command, flags emulateFlags) (err error) {
	if flags.speed <= 0 {
		return fmt.Errorf("--speed=%v: want more than 0", flags.speed)
	}
	scenario, err := readScenario(a, flags.scenario)
	if err != nil {
		return err
	}
	soft, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	dir, remove, err := emulatorDir(flags.dir)
	if err != nil {
		return err
	}
	defer remove()
	site := gcpemulator.Site{
		Scenario: scenario, Clock: cloud.Faster(flags.speed), Listen: flags.listen, Dir: dir,
		Log: slog.New(slog.NewTextHandler(a.Stderr, nil)),
	}
	for _, name := range flags.buckets {
		site.Buckets = append(site.Buckets, storage.Bucket{Name: name})
	}
	e, err := gcpemulator.Open(soft, site)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Stdout, "export FRAY_GCP_ENDPOINT=%s\n", e.URL())
	fmt.Fprintln(a.Stderr, "Copy the line above into another shell. Ctrl-C ends the cloud and everything on its hosts.")
	<-soft.Done()
	return e.Close()
}

// readScenario reads a scenario file, "" being the calm one.
func readScenario(a *terminal.Terminal, path string) (cloud.Scenario, error) {
	if path == "" {
		return cloud.Scenario{}, nil
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return cloud.Scenario{}, fmt.Errorf("read scenario: %w", err)
	}
	s, diags := cloud.ParseScenario(src, path)
	return s, a.Diagnostics(map[string]*hcl.File{path: {Bytes: src}}, diags)
}

// emulatorDir is where an emulator lives, and what takes it away at the end.
func emulatorDir(stated string) (dir string, remove func(), err error) {
	if stated != "" {
		if dir, err = filepath.Abs(stated); err != nil {
			return "", nil, fmt.Errorf("find --dir: %w", err)
		}
		return dir, func() {}, nil
	}
	if dir, err = os.MkdirTemp("", "fray-gcp-"); err != nil {
		return "", nil, fmt.Errorf("make a directory: %w", err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}
