package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
)

// Check finds what cannot work on this machine: programs that are not there,
// ports that another process has, uv where it is needed and missing. Values that
// only apply will know are not checked. Instances of one job that have the same
// problem are named once.
func (p *Provider) Check(ctx context.Context, desired schema.Desired) []providers.Problem {
	c := checker{provider: p, busy: map[int]bool{}, programs: map[string]bool{}}
	type key struct {
		base               schema.Address
		attribute, summary string
	}
	seen := map[key]bool{}
	var problems []providers.Problem
	for i := range desired.Jobs {
		if ctx.Err() != nil {
			break
		}
		job := &desired.Jobs[i]
		if job.Resources.Provider != schema.ProviderLocal {
			continue
		}
		for _, problem := range c.job(job) {
			problem.Addr = job.Addr
			k := key{job.Addr.Base(), problem.Attribute, problem.Summary}
			if !seen[k] {
				seen[k] = true
				problems = append(problems, problem)
			}
		}
	}
	return problems
}

// checker reads each fact once.
type checker struct {
	provider *Provider
	busy     map[int]bool    // ports by number, as far as they were checked
	programs map[string]bool // whether a file is one that can be run, likewise
	last     sought          // that was found
}

// sought is a program that is looked for on a path, in which relative places are below dir.
type sought struct{ name, path, dir string }

func (c *checker) job(job *schema.Job) []providers.Problem {
	found := c.ports(job)
	if job.Environment.UV != nil {
		return append(found, c.uv(job)...)
	}
	return append(found, c.command(job)...)
}

// workDir is where the job's command runs, as it is here before it is shipped.
func (c *checker) workDir(job *schema.Job) string {
	switch project := job.Environment.Project; {
	case project == "":
		return c.provider.config.WorkDir
	case filepath.IsAbs(project):
		return project
	default:
		return filepath.Join(c.provider.config.WorkDir, project)
	}
}

func literal(t schema.Text) (string, bool) {
	if t.IsSensitive() || t.IsUnknown() {
		return "", false
	}
	return t.String(), true
}

func (c *checker) command(job *schema.Job) []providers.Problem {
	if len(job.Command) == 0 {
		return nil
	}
	name, ok := literal(job.Command[0])
	if !ok {
		return nil
	}
	path := os.Getenv("PATH")
	if text, set := job.Environment.Env["PATH"]; set {
		if path, ok = literal(text); !ok {
			return nil
		}
	}
	dir := c.workDir(job)
	var summary, detail string
	switch {
	case !strings.Contains(name, "/"):
		if c.last == (sought{name, path, dir}) {
			return nil
		}
		if slices.ContainsFunc(filepath.SplitList(path), func(place string) bool {
			return c.isProgram(inside(dir, filepath.Join(place, name)))
		}) {
			c.last = sought{name, path, dir}
			return nil
		}
		summary = "Command not found"
		detail = fmt.Sprintf("There is no program %q on PATH (%s). Install it, or write the path of a file.", name, path)
	case c.isProgram(inside(dir, name)):
		return nil
	default:
		file := inside(dir, name)
		summary = "Command not found"
		detail = fmt.Sprintf("There is no file %s. Paths with a slash start in the project's directory, or without a project in that of the configuration.", file)
		if _, err := os.Stat(file); err == nil {
			summary = "Command is not executable"
			detail = fmt.Sprintf("Make it so with \"chmod +x %s\", or name the program that should run it.", file)
		}
	}
	return []providers.Problem{{Attribute: "command", Summary: summary, Detail: detail}}
}

func inside(dir, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

func (c *checker) isProgram(file string) bool {
	is, known := c.programs[file]
	if !known {
		info, err := os.Stat(file)
		is = err == nil && !info.IsDir() && info.Mode()&0o111 != 0
		c.programs[file] = is
	}
	return is
}

func (c *checker) uv(job *schema.Job) []providers.Problem {
	var found []providers.Problem
	if _, err := exec.LookPath("uv"); err != nil {
		found = append(found, providers.Problem{
			Attribute: "environment.uv",
			Summary:   "uv is not installed",
			Detail:    "The job's Python environment is made by uv, which is not on PATH. Install it, for example with \"pip install uv\".",
		})
	}
	dir := c.workDir(job)
	for _, each := range []struct{ name, made string }{
		{"pyproject.toml", "uv init"},
		{"uv.lock", "uv lock"},
	} {
		if _, err := os.Stat(filepath.Join(dir, each.name)); errors.Is(err, os.ErrNotExist) {
			found = append(found, providers.Problem{
				Attribute: "environment.uv",
				Summary:   "Project cannot be used",
				Detail:    fmt.Sprintf("uv installs what %s lists, and it is not there. Make it with %q in that directory.", filepath.Join(dir, each.name), each.made),
			})
		}
	}
	return found
}

func (c *checker) ports(job *schema.Job) []providers.Problem {
	var found []providers.Problem
	for _, port := range job.Resources.Ports {
		if port.Number == 0 || !c.isBusy(port.Number) {
			continue
		}
		found = append(found, providers.Problem{
			Attribute: "resources.ports",
			Summary:   "Port is in use",
			Detail:    fmt.Sprintf("Another process of this machine listens on port %d (%s). End that process, or name the port without a number to get a free one.", port.Number, port.Name),
		})
	}
	return found
}

// isBusy reports whether a process other than a task of this root listens on a port
// of every address, which would be in the way of a task.
func (c *checker) isBusy(number int) bool {
	if busy, known := c.busy[number]; known {
		return busy
	}
	l, err := net.Listen("tcp", net.JoinHostPort(checkAddress, strconv.Itoa(number)))
	if err == nil {
		l.Close()
	}
	busy := errors.Is(err, syscall.EADDRINUSE) && !c.provider.hasTaskOn(number)
	c.busy[number] = busy
	return busy
}

// hasTaskOn reports whether a living task of any slice here was given a port.
func (p *Provider) hasTaskOn(number int) bool {
	locks, err := filepath.Glob(filepath.Join(p.slices(), "*", "hosts", "*", taskLockFile))
	if err != nil {
		return false // only a bad pattern, which this is not
	}
	return slices.ContainsFunc(locks, func(lock string) bool {
		who, ok := host{dir: filepath.Dir(lock)}.holderOf(taskLockFile)
		return ok && slices.Contains(who.Ports, number)
	})
}
