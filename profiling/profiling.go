package profiling

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/profile"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/session"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// Options are what is measured, of which task, and where the profile goes.
type Options struct {
	Task     int
	Host     int // -1: Task counts
	Kind     string
	Duration time.Duration
	PID      int // 0: the main process
	Rate     int
	Out      string // a file; "": files that are named by job, task and time
}

// maxStored is the size in bytes of the largest profile that is kept for the page.
const maxStored = 16 << 20

// Address divides JOB.TASK into the address of the job and the task, which is -1 without one.
func Address(text string) (job string, task int) {
	found := regexp.MustCompile(`^(.+)\.([0-9]+)$`).FindStringSubmatch(text)
	if found == nil {
		return text, -1
	}
	n, err := strconv.Atoi(found[2])
	if err != nil {
		return text, -1
	}
	return found[1], n
}

// check rejects options before anything is measured: a long measurement must not end with a typo.
func (o Options) check() error {
	const most = 30 * time.Minute
	switch kind := profile.Kind(o.Kind); {
	case kind != profile.CPU && kind != profile.Memory && kind != profile.Stacks:
		return fmt.Errorf("--type=%s: want cpu, memory or stacks", o.Kind)
	case o.Duration < time.Second || o.Duration > most:
		return fmt.Errorf("--duration=%s: want 1s to %s", o.Duration, most)
	case o.Rate < 1 || o.Rate > 1000:
		return fmt.Errorf("--rate=%d: want 1 to 1000 samples in a second", o.Rate)
	case o.PID < 0:
		return fmt.Errorf("--pid=%d: want the id of a process on the host", o.PID)
	}
	dir := "."
	if o.Out != "" {
		dir = filepath.Dir(o.Out)
		if info, err := os.Stat(o.Out); err == nil && info.IsDir() {
			return fmt.Errorf("--out=%s: it is a directory; name a file in it", o.Out)
		}
		if want := o.endings(); !endsWith(o.Out, want) {
			return fmt.Errorf("--out=%s: a profile of type %s goes into a file that ends with %s", o.Out, o.Kind, strings.Join(want, ", "))
		}
	} else if profile.Kind(o.Kind) == profile.Stacks {
		return nil // they are printed
	}
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return fmt.Errorf("the profile cannot be written to %s: %w; name another place with --out", dir, err)
	}
	return nil
}

// endings are those of files that a kind of profile can be written to.
func (o Options) endings() []string {
	if profile.Kind(o.Kind) == profile.Stacks {
		return []string{".txt"}
	}
	return []string{".svg", ".json", ".pb.gz"}
}

func endsWith(name string, endings []string) bool {
	for _, e := range endings {
		if strings.HasSuffix(name, e) {
			return true
		}
	}
	return false
}

// Run measures a task and writes the profile.
func Run(ctx context.Context, a *terminal.Terminal, l *configuration.Loaded, addr schema.Address, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	asked := &clusterapi.Profile{Duration: durationpb.New(o.Duration), Pid: int32(o.PID), Rate: int32(o.Rate)}
	switch profile.Kind(o.Kind) {
	case profile.CPU:
		asked.Kind = clusterapi.ProfileKind_PROFILE_KIND_CPU
	case profile.Memory:
		asked.Kind = clusterapi.ProfileKind_PROFILE_KIND_MEMORY
	case profile.Stacks:
		asked.Kind = clusterapi.ProfileKind_PROFILE_KIND_STACKS
	}
	measured, err := session.Measure(ctx, a, l, addr, session.Measurement{Task: o.Task, Host: o.Host, Profile: asked})
	if err != nil {
		return err
	}
	header, data, err := profile.Split(measured.Sent)
	if err != nil {
		return err
	}
	r := result{Measured: measured, header: header, data: data, at: time.Now()}
	if err := r.write(a, o.Out); err != nil {
		return err
	}
	r.keep(ctx, a, l.Stack.Store)
	return nil
}

// result is a profile that came from a host.
type result struct {
	session.Measured

	header profile.Header
	data   []byte
	at     time.Time
}

// title names the profile for people.
func (r result) title() string {
	return fmt.Sprintf("%s task %d, attempt %d: %s of process %d (%s) by %s, %s", r.Job, r.Task, r.Attempt, r.header.Kind, r.header.PID,
		r.header.Program, r.header.Tool, r.at.UTC().Format(time.RFC3339))
}

// write writes the files of a profile, or prints stacks for which no file was named.
func (r result) write(a *terminal.Terminal, out string) error {
	if r.header.Format == profile.PlainText {
		if out != "" {
			return save(a, out, r.data)
		}
		_, err := a.Stdout.Write(printableText(r.data))
		return err
	}
	graph, err := profile.Read(r.header.Format, r.data)
	if err != nil {
		return err
	}
	var drawn bytes.Buffer
	if err := profile.Flame(&drawn, r.title(), graph); err != nil {
		return err
	}
	switch {
	case strings.HasSuffix(out, ".svg"):
		err = save(a, out, drawn.Bytes())
	case out != "":
		if !strings.HasSuffix(r.header.Format.Ext(), out[max(0, strings.LastIndexByte(out, '.')):]) {
			to := strings.TrimSuffix(strings.TrimSuffix(out, ".json"), ".pb.gz") + r.header.Format.Ext()
			a.Warn(fmt.Sprintf("process %d (%s) gives a profile in the format %s, so that the file is %s", r.header.PID, r.header.Program, r.header.Format, to))
			out = to
		}
		err = save(a, out, r.data)
	default:
		base := r.fileName()
		err = errors.Join(save(a, base+".svg", drawn.Bytes()), save(a, base+r.header.Format.Ext(), r.data))
	}
	if err != nil {
		return err
	}
	fmt.Fprint(a.Stdout, profile.Top(graph, 10))
	return nil
}

// fileName is that of files without an ending.
func (r result) fileName() string {
	safe := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-' {
			return c
		}
		return '-'
	}, r.Job.String())
	return fmt.Sprintf("%s.%d-%s-%s", strings.Trim(safe, "-."), r.Task, r.header.Kind, r.at.UTC().Format("20060102T150405.000Z"))
}

func save(a *terminal.Terminal, path string, data []byte) error {
	if err := durable.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("write the profile to %s: %w", path, err)
	}
	fmt.Fprintf(a.Stderr, "wrote %s (%s)\n", path, terminal.Counted(len(data), "byte", "bytes"))
	return nil
}

// printableText is a text of another machine without what a terminal would act on.
func printableText(data []byte) []byte {
	return bytes.Map(func(c rune) rune {
		if c < ' ' && c != '\n' && c != '\t' || c >= 0x7f && c < 0xa0 {
			return '�'
		}
		return c
	}, data)
}

// keep keeps the profile in the store, where the controller's page finds it. That it cannot is no failure of the verb.
func (r result) keep(ctx context.Context, a *terminal.Terminal, s store.Store) {
	if len(r.data) > maxStored {
		a.Warn(fmt.Sprintf("the controller's page does not show this profile: it has over %d MiB", maxStored>>20))
		return
	}
	if err := store.KeepProfile(ctx, s, r.JobID, store.NewProfileName(r.Attempt, r.Task, r.at, r.header), r.data); err != nil {
		a.Warn(fmt.Sprintf("the controller's page does not show this profile: %v", err))
	}
}
