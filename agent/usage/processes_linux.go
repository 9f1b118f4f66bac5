package usage

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/fray-ml/fray/agent/process"
)

// ticks are those of a second in /proc, on all architectures that Go knows (USER_HZ).
const ticks = 100

// consumption is that of all processes of a task.
type consumption struct {
	cpu    time.Duration // so far, of those that have ended too
	memory int64         // resident, in bytes; pages that several share count for each
}

// processes reads the consumption of a task; false if none of its processes is there.
func processes(t Task) (consumption, bool) {
	var out consumption
	found := false
	add := func(pid int, inside bool) {
		stat, ok := readStat(pid)
		if !ok {
			return
		}
		out.cpu += stat.ended // by children that it has waited for
		if inside {
			out.cpu += stat.own
			out.memory += stat.memory
		}
		found = true
	}
	for _, root := range t.Roots {
		add(root, false)
		for _, pid := range below(root) {
			add(pid, true)
		}
	}
	if t.Container > 0 {
		add(t.Container, true)
		for _, pid := range below(t.Container) {
			add(pid, true)
		}
	}
	return out, found
}

// below are the descendants of a process. Reading the children of each thread costs as
// much as there are threads; where the kernel does not list them, all processes are read.
func below(root int) []int {
	var found []int
	queue := []int{root}
	for len(queue) > 0 {
		pid := queue[0]
		queue = queue[1:]
		children, err := childrenOf(pid)
		if errors.Is(err, fs.ErrNotExist) && pid == root {
			all, err := process.List()
			if err != nil {
				return nil
			}
			return process.Descendants(all, root)
		}
		queue = append(queue, children...)
		found = append(found, children...)
	}
	return found
}

// childrenOf are the children of a process's threads; an error where the kernel does
// not list those of its first thread.
func childrenOf(pid int) ([]int, error) {
	at := "/proc/" + strconv.Itoa(pid) + "/task/"
	threads, err := os.ReadDir(at)
	if err != nil {
		return nil, nil // it has ended
	}
	var children []int
	for i, thread := range threads {
		data, err := os.ReadFile(at + thread.Name() + "/children")
		if err != nil {
			if i == 0 {
				return nil, err
			}
			continue
		}
		for field := range bytes.FieldsSeq(data) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				children = append(children, child)
			}
		}
	}
	return children, nil
}

type procStat struct {
	own, ended time.Duration
	memory     int64
}

// readStat reads proc_pid_stat(5).
func readStat(pid int) (procStat, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procStat{}, false
	}
	// Behind the name, which may hold anything: state, ppid, ... The numbers in the manual
	// are of all fields, from 1; state is 3.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	number := func(n int) int64 {
		if n-3 >= len(fields) {
			return 0
		}
		value, _ := strconv.ParseInt(string(fields[n-3]), 10, 64)
		return value
	}
	spent := func(n int64) time.Duration { return time.Duration(n) * time.Second / ticks }
	return procStat{
		own: spent(number(14) + number(15)), ended: spent(number(16) + number(17)), memory: number(24) * int64(os.Getpagesize()),
	}, true
}
