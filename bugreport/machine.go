package bugreport

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// versions adds the versions of fray here and on hosts, of the system, and which programs are here.
func (s *subject) versions(ctx context.Context, into *sink) error {
	type versions struct {
		Fray      string            `json:"fray"`
		Go        string            `json:"go"`
		Platform  string            `json:"platform"`
		Kernel    string            `json:"kernel,omitempty"`
		System    string            `json:"system,omitempty"`
		CPUs      int               `json:"cpus"`
		Time      time.Time         `json:"time"`
		Store     string            `json:"store,omitempty"`
		Format    int               `json:"state_format,omitempty"`
		Written   string            `json:"state_written_by,omitempty"`
		Providers []string          `json:"providers,omitempty"`
		Agents    map[string]int    `json:"agents"` // how many hosts have a version
		Programs  map[string]string `json:"programs"`
		Modules   map[string]string `json:"modules,omitempty"` // that fray is built with
	}
	v := versions{
		Fray: release.Version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(), Time: time.Now(),
		Agents: map[string]int{}, Programs: map[string]string{}, Modules: map[string]string{},
	}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		v.Kernel = unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
	}
	if data, err := os.ReadFile("/etc/os-release"); err == nil {
		for line := range strings.Lines(string(data)) {
			if text, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
				v.System = strings.Trim(strings.TrimSpace(text), `"`)
			}
		}
	}
	for _, program := range []string{"git", "uv", "python3", "docker", "podman", "gcloud"} {
		v.Programs[program] = where(program)
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			v.Modules[m.Path] = m.Version
		}
	}
	if s.stack != nil {
		v.Store = s.stack.Store.Location()
	}
	if s.doc != nil {
		v.Format, v.Written = s.doc.FormatVersion, s.doc.FrayVersion
		for _, p := range s.doc.Desired.Providers {
			v.Providers = append(v.Providers, string(p.Name))
		}
		for _, slice := range s.doc.Slices {
			if text := string(slice.Spec.Provider); !slices.Contains(v.Providers, text) {
				v.Providers = append(v.Providers, text)
			}
		}
		slices.Sort(v.Providers)
		s.countAgents(ctx, v.Agents)
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		into.add("versions.json", text)
	}
	return err
}

// where is the file of a program, "" if there is none on the path.
func where(program string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		file := filepath.Join(dir, program)
		if info, err := os.Stat(file); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}

// countAgents counts hosts by the version of their agents.
func (s *subject) countAgents(ctx context.Context, into map[string]int) {
	listed, err := s.stack.Store.List(ctx, store.HostsPrefix)
	if err != nil {
		return // the collector of agents reports it
	}
	for _, o := range listed[:min(len(listed), maxObjects)] {
		object, err := s.stack.Store.Get(ctx, o.Key)
		var report state.HostReport
		if err == nil && store.Decode(object.Data, &report) == nil {
			into[report.Version]++
		}
	}
}

// localFiles are the files of an agent's directory that a report has, by the beginning of their names, and
// those whose end is enough. Keys, identities and environments are none of them.
func localFile(name string) (wanted, tail bool) {
	switch name {
	case "slice.json", "agent.json", "build.json", "task.json", "process.json", "stop.json", "exit.json", "report.json", "health.json", "termination.json":
		return true, false
	case "agent.log", "output.log":
		return true, true
	}
	return false, false
}

// localAgents adds the records and logs of agents on this machine.
func (s *subject) localAgents(ctx context.Context, into *sink) error {
	if s.stack == nil {
		return errNoStore
	}
	root := filepath.Join(s.stack.Root, "local")
	taken := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && path == root && errors.Is(err, fs.ErrNotExist):
			return fs.SkipAll
		case err != nil:
			into.note("%v", err)
			return nil
		case entry.IsDir() && slices.Contains([]string{"bundles", "callables", "identity", "profiles", "execs"}, entry.Name()):
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		wanted, tail := localFile(entry.Name())
		if !wanted {
			return nil
		}
		if taken++; taken > maxObjects {
			into.note("more files of agents than %d", maxObjects)
			return fs.SkipAll
		}
		most := int64(1 << 20)
		if tail {
			most = int64(s.options.Logs)
		}
		data, err := endOf(path, most+margin)
		if err != nil {
			into.note("%v", err)
			return nil
		}
		inside, err := filepath.Rel(root, path)
		if err == nil {
			into.addTail("local/"+filepath.ToSlash(inside), data, int(most))
		}
		return nil
	})
	return err
}

// endOf is the end of a file.
func endOf(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(max(0, info.Size()-most), io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// controller adds the stacks, the metrics and the timings of the controller that leads.
func (s *subject) controller(ctx context.Context, into *sink) error {
	if s.loaded == nil {
		return errNoState()
	}
	lease, served := s.stack.Served(ctx)
	if !served {
		return errors.New("no controller leads the stack, or it serves no cluster API")
	}
	follow, err := s.stack.Cluster(ctx, s.doc)
	if err != nil {
		return err
	}
	defer follow.Close()
	answer, err := clusterapi.NewAdminClient(follow).Inspect(ctx, &clusterapi.InspectRequest{})
	if err != nil {
		return fmt.Errorf("ask the controller of %s (process %d on %s): %w", lease.User, lease.PID, lease.Host, err)
	}
	into.add("controller/version.txt", []byte(answer.GetVersion()+"\n"))
	into.add("controller/goroutines.txt", []byte(answer.GetGoroutines()))
	into.add("controller/metrics.txt", []byte(answer.GetMetrics()))
	into.add("controller/timings.txt", []byte(timings(answer.GetMetrics())))
	return nil
}

// timings are the means of the histograms among metrics.
func timings(metrics string) string {
	sums := map[string]float64{}
	var out strings.Builder
	fmt.Fprintf(&out, "%12s  %10s  %s\n", "MEAN", "COUNT", "OF")
	lines := bufio.NewScanner(strings.NewReader(metrics))
	for lines.Scan() {
		name, text, ok := strings.Cut(lines.Text(), " ")
		if at := strings.LastIndexByte(lines.Text(), ' '); at >= 0 {
			name, text, ok = lines.Text()[:at], lines.Text()[at+1:], true
		}
		value, err := strconv.ParseFloat(text, 64)
		if !ok || err != nil || strings.HasPrefix(name, "#") {
			continue
		}
		plain, labels, _ := strings.Cut(name, "{")
		if base, isSum := strings.CutSuffix(plain, "_seconds_sum"); isSum {
			sums[base+"{"+labels] = value
		}
		if base, isCount := strings.CutSuffix(plain, "_seconds_count"); isCount && value > 0 {
			shown := base
			if labels != "" {
				shown += "{" + labels
			}
			fmt.Fprintf(&out, "%10.2fms  %10.0f  %s\n", 1000*sums[base+"{"+labels]/value, value, shown)
		}
	}
	return out.String()
}
