package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Sizes of what is measured of actors.
const (
	echoTime  = 1500 * time.Millisecond // of one round of a kind
	echoWarm  = 300 * time.Millisecond
	echoTurns = 3 // rounds of each kind, by turns; the median counts
	rayTurns  = 5 // likewise
	rayPinned = "ray==2.60.0"
)

// speed is how fast calls were answered.
type speed struct {
	p50, p99 time.Duration
	rate     float64 // a second
}

// actorBench measures calls and lives of actors.
type actorBench struct{ *bench }

// actorCalls measures calls from Go to Go, each beside a bare call of grpc-go in
// the same run, and a mebibyte beside a socket.
func (b actorBench) actorCalls() error {
	for _, size := range []int{64, 4 << 10, 1 << 20} {
		for _, flight := range []int{1, 64} {
			kinds := []echoKind{echoFray, echoGRPC}
			if flight == 1 {
				kinds = append(kinds, echoSocket)
			}
			speeds, err := b.echoes(kinds, size, flight)
			if err != nil {
				return err
			}
			ours, theirs := speeds[echoFray], speeds[echoGRPC]
			beside := fmt.Sprintf("grpc-go %s: %.2f of its p50, %.2f of its rate", theirs, float64(ours.p50)/float64(theirs.p50), ours.rate/theirs.rate)
			if socket, ok := speeds[echoSocket]; ok {
				beside += fmt.Sprintf("; a socket %s: %.2f of its p50", socket, float64(ours.p50)/float64(socket.p50))
			}
			b.row(fmt.Sprintf("Go to Go, %s, %d in flight", bytesText(size), flight), ours.String(), "1.15 of p50, 0.85 of rate", beside)
		}
	}
	return nil
}

func (s speed) String() string {
	return fmt.Sprintf("p50 %s p99 %s %.0f/s", us(s.p50), us(s.p99), s.rate)
}

func us(d time.Duration) string { return fmt.Sprintf("%d us", d.Microseconds()) }

func bytesText(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

// echoes measures kinds by turns, each with a server in a process of its own.
func (b actorBench) echoes(kinds []echoKind, size, flight int) (map[echoKind]speed, error) {
	calls := map[echoKind]func([]byte) error{}
	for _, kind := range kinds {
		server, err := b.serveApart(b.self, oneArg, oneEcho, string(kind), "")
		if err != nil {
			return nil, err
		}
		defer server.stop()
		call, stop, err := dialEcho(b.ctx, kind, server.address)
		if err != nil {
			return nil, err
		}
		defer stop()
		calls[kind] = call
	}
	return takeTurns(calls, size, flight)
}

// takeTurns measures kinds by turns.
func takeTurns(calls map[echoKind]func([]byte) error, size, flight int) (map[echoKind]speed, error) {
	rounds := map[echoKind][]speed{}
	for range echoTurns {
		for kind, call := range calls {
			if _, err := callFor(call, size, flight, echoWarm); err != nil {
				return nil, fmt.Errorf("%s: %w", kind, err)
			}
			s, err := callFor(call, size, flight, echoTime)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", kind, err)
			}
			rounds[kind] = append(rounds[kind], s)
		}
	}
	speeds := map[echoKind]speed{}
	for kind, all := range rounds {
		slices.SortFunc(all, func(a, b speed) int { return int(a.p50 - b.p50) })
		speeds[kind] = all[len(all)/2]
	}
	return speeds, nil
}

// callFor calls for a time, with so many calls on their way.
func callFor(call func([]byte) error, size, flight int, d time.Duration) (speed, error) {
	var callers sync.WaitGroup
	var failed atomic.Pointer[error]
	times := make([][]time.Duration, flight)
	began := time.Now()
	for i := range flight {
		callers.Go(func() {
			data := make([]byte, size)
			for time.Since(began) < d && failed.Load() == nil {
				start := time.Now()
				if err := call(data); err != nil {
					failed.Store(&err)
					return
				}
				times[i] = append(times[i], time.Since(start))
			}
		})
	}
	callers.Wait()
	took := time.Since(began)
	if err := failed.Load(); err != nil {
		return speed{}, *err
	}
	all := slices.Concat(times...)
	slices.Sort(all)
	return speed{p50: all[len(all)/2], p99: all[len(all)*99/100], rate: float64(len(all)) / took.Seconds()}, nil
}

// pythonCalls measures calls of which one side or both are Python, beside bare
// grpcio.
func (b actorBench) pythonCalls() error {
	python, err := b.python()
	if err != nil {
		return err
	}
	pair := filepath.Join(b.root, "bench", "actors", "pair.py")
	rows := map[string]map[string]float64{}
	for _, kind := range []string{"fray", "grpcio"} {
		server, err := b.serveApart(python, pair, "serve", kind)
		if err != nil {
			return err
		}
		rows[kind], err = b.tellings(python, pair, "call", kind, server.address)
		server.stop()
		if err != nil {
			return err
		}
	}
	for _, size := range pairSizes() {
		b.row("Python to Python, "+size, pairText(rows["fray"], size), "-", "grpcio "+pairText(rows["grpcio"], size))
	}
	return errors.Join(b.mixedCalls(python, pair), b.securedCalls(python, pair))
}

// mixedCalls measures Go to Python and Python to Go, each beside bare gRPC with
// the same two languages.
func (b actorBench) mixedCalls(python, pair string) error {
	calls := map[echoKind]func([]byte) error{}
	for kind, theirs := range map[echoKind]string{echoFray: "fray", echoGRPC: "grpcio"} {
		server, err := b.serveApart(python, pair, "serve", theirs)
		if err != nil {
			return err
		}
		defer server.stop()
		call, stop, err := dialEcho(b.ctx, kind, server.address)
		if err != nil {
			return err
		}
		defer stop()
		calls[kind] = call
	}
	for _, size := range []int{64, 4 << 10, 1 << 20} {
		one, err := takeTurns(calls, size, 1)
		if err != nil {
			return err
		}
		many, err := takeTurns(calls, size, 64)
		if err != nil {
			return err
		}
		text := func(kind echoKind) string { return fmt.Sprintf("%s; 64 in flight %.0f/s", one[kind], many[kind].rate) }
		b.row("Go to Python, "+bytesText(size), text(echoFray), "-", "grpc-go to grpcio "+text(echoGRPC))
	}
	rows := map[echoKind]map[string]float64{}
	for kind, theirs := range map[echoKind]string{echoFray: "fray", echoGRPC: "invoke"} {
		server, err := b.serveApart(b.self, oneArg, oneEcho, string(kind), "")
		if err != nil {
			return err
		}
		rows[kind], err = b.tellings(python, pair, "call", theirs, server.address)
		server.stop()
		if err != nil {
			return err
		}
	}
	for _, size := range pairSizes() {
		b.row("Python to Go, "+size, pairText(rows[echoFray], size), "-", "grpcio to grpc-go "+pairText(rows[echoGRPC], size))
	}
	return nil
}

// securedCalls measures calls between two Python programs that prove themselves
// to each other, beside the same bytes over a socket of Python's ssl.
func (b actorBench) securedCalls(python, pair string) error {
	secured := filepath.Join(filepath.Dir(pair), "secured.py")
	rows, err := b.tellings(python, secured, b.dir)
	if err != nil {
		return err
	}
	for _, size := range pairSizes() {
		text := func(kind string) string {
			name := kind + ", " + size
			return fmt.Sprintf("p50 %.0f us p99 %.0f us", rows[name+" p50"]*1e6, rows[name+" p99"]*1e6)
		}
		b.row("Python to Python within TLS, "+size, text("fray"), "-", "a socket of ssl "+text("ssl"))
	}
	return nil
}

// pairSizes are the sizes that pair.py measures, as it names them.
func pairSizes() []string { return []string{"64 B", "4 KiB", "1 MiB"} }

// pairText is what pair.py measured of a size.
func pairText(rows map[string]float64, size string) string {
	return fmt.Sprintf("p50 %.0f us p99 %.0f us, %.0f/s; 64 in flight %.0f/s", rows[size+" p50"]*1e6, rows[size+" p99"]*1e6,
		rows[size+", 1 in flight"], rows[size+", 64 in flight"])
}

// python is the interpreter that has the package fray.
func (b actorBench) python() (string, error) {
	cmd := exec.CommandContext(b.ctx, filepath.Join(b.root, "scripts", "python-env"))
	// What pip installs is compiled. Where PYTHONDONTWRITEBYTECODE is set, as in many
	// images, each process would otherwise compile what uv installed anew.
	cmd.Env = append(os.Environ(), "UV_COMPILE_BYTECODE=1")
	cmd.Stdout, cmd.Stderr = b.log, b.log
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("make the environment of the Python package: %w", err)
	}
	python := filepath.Join(b.root, "python", ".venv", "bin", "python")
	cmd = exec.CommandContext(b.ctx, python, "-m", "compileall", "-q", filepath.Join(b.root, "python", "src"))
	cmd.Stdout, cmd.Stderr = b.log, b.log
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("compile the Python package: %w", err)
	}
	return python, nil
}

// telling is a line that a Python program of bench/actors prints.
type telling struct {
	Row   string  `json:"row"`
	Value float64 `json:"value"`
}

// tellings runs a program and takes what it measured, by row.
func (b actorBench) tellings(command ...string) (map[string]float64, error) {
	cmd := exec.CommandContext(b.ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Stderr = b.root, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	rows := map[string]float64{}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var t telling
		if err := json.Unmarshal(lines.Bytes(), &t); err == nil {
			rows[t.Row] = t.Value
		}
	}
	_, _ = io.Copy(io.Discard, out)
	if err := errors.Join(cmd.Wait(), lines.Err()); err != nil {
		return nil, fmt.Errorf("%v: %w", command, err)
	}
	return rows, nil
}

// rayRows are those of Ray's microbenchmark, and how much faster ours is to be.
func rayRows() []struct {
	name string
	want float64
} {
	return []struct {
		name string
		want float64
	}{
		{"1:1 sync", 3.5}, {"1:1 async 1000", 4}, {"1:1 concurrent", 4}, {"1:n", 4}, {"n:n", 4}, {"n:n with an argument", 4}, {"1 MiB argument", 4}, {"100 MiB result", 1},
		{"items of a stream", 1},
	}
}

// besideRay runs the rows of Ray's microbenchmark with both libraries, by turns.
func (b actorBench) besideRay() error {
	python, err := b.python()
	if err != nil {
		return err
	}
	ray, err := b.rayEnvironment()
	if err != nil {
		return err
	}
	dir := filepath.Join(b.root, "bench", "actors")
	ours, theirs := map[string][]float64{}, map[string][]float64{}
	for range rayTurns {
		if err := b.collect(ours, python, filepath.Join(dir, "fray_rows.py")); err != nil {
			return err
		}
		if err := b.collect(theirs, ray, filepath.Join(dir, "ray_rows.py")); err != nil {
			return err
		}
	}
	for _, row := range rayRows() {
		o, t := ours[row.name], theirs[row.name]
		if len(o) == 0 || len(t) == 0 {
			return fmt.Errorf("%s was not measured", row.name)
		}
		slices.Sort(o)
		slices.Sort(t)
		ours, theirs := o[len(o)/2], t[len(t)/2]
		b.row("calls like Ray's, "+row.name, fmt.Sprintf("%.0f/s", ours), fmt.Sprintf("%.1f times Ray", row.want),
			fmt.Sprintf("Ray %.0f/s: %.1f times; our slowest beside its fastest: %.1f times", theirs, ours/theirs, o[0]/t[len(t)-1]))
	}
	return nil
}

func (b actorBench) collect(into map[string][]float64, command ...string) error {
	rows, err := b.tellings(command...)
	for name, value := range rows {
		into[name] = append(into[name], value)
	}
	return err
}

// rayEnvironment installs Ray for this run.
func (b actorBench) rayEnvironment() (string, error) {
	dir := filepath.Join(b.dir, "ray")
	uv := filepath.Join(b.root, ".tools", "bin", "uv")
	python := filepath.Join(dir, "bin", "python")
	for _, command := range [][]string{
		{uv, "venv", "--quiet", "--python", "3.11", dir},
		{uv, "pip", "install", "--quiet", "--python", python, rayPinned, "numpy"},
	} {
		cmd := exec.CommandContext(b.ctx, command[0], command[1:]...)
		cmd.Stdout, cmd.Stderr = b.log, b.log
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("install Ray: %v: %w", command, err)
		}
	}
	return python, nil
}
