package profiler

import (
	"cmp"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/agent/process"
)

// language is what a process's program is written in, as far as it decides how it is measured.
type language int

const (
	native language = iota
	python
	golang
)

// candidate is a process of the task.
type candidate struct {
	process.Process

	depth    int // below the task's command
	program  string
	language language
	ticks    uint64 // of the processor that it has used
}

// describe looks at processes; those that end meanwhile are left out.
func describe(all []process.Process, pids []int, root int) []candidate {
	parents := map[int]int{}
	for _, p := range all {
		parents[p.PID] = p.Parent
	}
	var found []candidate
	for _, p := range all {
		if !slices.Contains(pids, p.PID) {
			continue
		}
		exe, err := os.Readlink(procFile(p.PID, "exe"))
		if err != nil {
			continue
		}
		c := candidate{Process: p, program: filepath.Base(strings.TrimSuffix(exe, " (deleted)")), ticks: ticksOf(p.PID)}
		c.language = languageOf(p.PID, c.program)
		for at := p.PID; at != root && at > 1 && c.depth < len(all); at = parents[at] {
			c.depth++
		}
		found = append(found, c)
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.depth, b.depth), cmp.Compare(b.ticks, a.ticks), cmp.Compare(a.PID, b.PID))
	})
	return found
}

// choose returns the process with an id, or the main one: of those in a language that can be measured the
// closest to the task's command, and among siblings the one that used most processor time.
func choose(found []candidate, pid int) (candidate, error) {
	if pid == 0 {
		for _, c := range found {
			if c.language != native {
				return c, nil
			}
		}
		return found[0], nil
	}
	var names []string
	for _, c := range found {
		if c.PID == pid {
			return c, nil
		}
		names = append(names, fmt.Sprintf("%d (%s)", c.PID, c.program))
	}
	return candidate{}, fmt.Errorf("process %d is not one of the task's; these are %s", pid, strings.Join(names, ", "))
}

func procFile(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

func languageOf(pid int, program string) language {
	interpreter := regexp.MustCompile(`^(python|pypy)[0-9.]*[dt]?$`)
	if interpreter.MatchString(program) || loadsPython(pid) {
		return python
	}
	if _, err := buildinfo.ReadFile(procFile(pid, "exe")); err == nil {
		return golang
	}
	return native
}

// loadsPython reports whether a program with another name has Python's library in it.
func loadsPython(pid int) bool {
	maps, err := os.ReadFile(procFile(pid, "maps"))
	return err == nil && strings.Contains(string(maps), "/libpython3.")
}

// ticksOf is how much processor time a process has used, by proc_pid_stat(5).
func ticksOf(pid int) uint64 {
	stat, err := os.ReadFile(procFile(pid, "stat"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat[max(0, strings.LastIndexByte(string(stat), ')')):]), ")")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseUint(fields[11], 10, 64)
	system, _ := strconv.ParseUint(fields[12], 10, 64)
	return user + system
}
