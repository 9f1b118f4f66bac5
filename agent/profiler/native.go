package profiler

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/fray-ml/fray/profile"
)

// stacks writes where the threads of the task's processes are, or of the one that was chosen.
func (m *measurement) stacks(ctx context.Context, found []candidate) error {
	main, err := choose(found, m.PID)
	if err != nil {
		return err
	}
	if m.PID != 0 {
		found = []candidate{main}
	}
	var out strings.Builder
	tools := map[string]bool{}
	for _, c := range found {
		fmt.Fprintf(&out, "Process %d: %s, child of %d\n", c.PID, c.program, c.Parent)
		text, tool, err := m.stacksOf(ctx, c)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			fmt.Fprintf(&out, "(%v)\n", err)
			m.note("process %d: %v", c.PID, err)
		}
		if tool == "" {
			text, tool = threads(c.PID), "/proc"
		}
		tools[tool] = true
		out.WriteString(strings.TrimRight(text, "\n") + "\n\n")
	}
	var used []string
	for _, tool := range []string{"py-spy", "pprof", "/proc"} {
		if tools[tool] {
			used = append(used, tool)
		}
	}
	h := profile.Header{Kind: m.Kind, Format: profile.PlainText, Tool: strings.Join(used, ", "), PID: main.PID, Program: main.program}
	return m.send(h, []byte(out.String()))
}

// stacksOf are the stacks of a process in its own language; no tool where there are none.
func (m *measurement) stacksOf(ctx context.Context, c candidate) (text, tool string, err error) {
	switch c.language {
	case python:
		program, err := m.findPySpy(ctx, c)
		if err == nil {
			err = mayTrace(c.PID)
		}
		if err != nil {
			return "", "", err
		}
		if text, err = m.runPySpy(ctx, program, nil, "dump", "--pid", fmt.Sprint(c.PID)); err != nil {
			return "", "", err
		}
		return withoutCommandLine(text), "py-spy", nil
	case golang:
		data, err := m.fetch(ctx, c, goStacks)
		if err != nil {
			return "", "", err
		}
		return string(data), "pprof", nil
	case native:
	}
	return "", "", nil
}

// maxThreads bounds how many threads of a process are listed.
const maxThreads = 500

// threads lists the threads of a process, what each waits for and, where the agent may read it, its stack in the kernel.
func threads(pid int) string {
	var out strings.Builder
	dir := procFile(pid, "task")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "it has ended"
	}
	for i, e := range entries {
		if i == maxThreads {
			fmt.Fprintf(&out, "  and %d more threads\n", len(entries)-i)
			break
		}
		read := func(name string) string {
			f, err := os.Open(dir + "/" + e.Name() + "/" + name)
			if err != nil {
				return ""
			}
			defer f.Close()
			data, _ := io.ReadAll(io.LimitReader(f, 64<<10))
			return strings.TrimSpace(string(data))
		}
		state := ""
		for line := range strings.Lines(read("status")) {
			if value, ok := strings.CutPrefix(line, "State:"); ok {
				state = strings.TrimSpace(value)
			}
		}
		fmt.Fprintf(&out, "Thread %s %q: %s", e.Name(), read("comm"), state)
		if waits := read("wchan"); waits != "" && waits != "0" {
			fmt.Fprintf(&out, ", in %s", waits)
		}
		out.WriteString("\n")
		for line := range strings.Lines(read("stack")) {
			out.WriteString("    " + strings.TrimSpace(line) + "\n")
		}
	}
	return out.String()
}
