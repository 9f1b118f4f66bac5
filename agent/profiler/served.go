package profiler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/fray-ml/fray/profile"
)

// question is a path of a process that serves its own profiles.
type question func(m *measurement) (path string, format profile.Format, wait time.Duration)

// goProfile is a profile as net/http/pprof serves it.
func goProfile(m *measurement) (string, profile.Format, time.Duration) {
	if m.Kind == profile.Memory {
		return "/debug/pprof/heap", profile.Pprof, 0
	}
	seconds := max(1, int(m.Duration.Round(time.Second).Seconds()))
	return "/debug/pprof/profile?seconds=" + strconv.Itoa(seconds), profile.Pprof, time.Duration(seconds) * time.Second
}

// goStacks are the stacks of all goroutines.
func goStacks(*measurement) (string, profile.Format, time.Duration) {
	return "/debug/pprof/goroutine?debug=2", profile.PlainText, 0
}

// pythonMemory is what the package fray of Python serves.
func pythonMemory(m *measurement) (string, profile.Format, time.Duration) {
	seconds := max(1, int(m.Duration.Round(time.Second).Seconds()))
	return "/memory?seconds=" + strconv.Itoa(seconds), profile.Speedscope, time.Duration(seconds) * time.Second
}

// served has a process measure itself.
func (m *measurement) served(ctx context.Context, c candidate, ask question) error {
	_, format, wait := ask(m)
	data, err := m.fetch(ctx, c, ask)
	if err != nil {
		return err
	}
	if wait > 0 && m.interrupted.Err() != nil {
		return errors.New("interrupted: a process that measures itself gives no part of a profile")
	}
	tool := "pprof"
	if format == profile.Speedscope {
		tool = "tracemalloc"
	}
	return m.send(profile.Header{Kind: m.Kind, Format: format, Tool: tool, PID: c.PID, Program: c.program}, data)
}

const (
	// maxProfile bounds a profile, in bytes.
	maxProfile = 64 << 20
	// answerPatience is how long a process may take beyond the time it measures.
	answerPatience = 30 * time.Second
)

// fetch asks a process at its socket or, where it has none, the port of the task.
func (m *measurement) fetch(ctx context.Context, c candidate, ask question) ([]byte, error) {
	path, _, wait := ask(m)
	network, address := m.endpoint(c.PID)
	if network == "" {
		return nil, m.notServed(c)
	}
	if wait > 0 {
		m.note("measuring process %d (%s) for %s", c.PID, c.program, wait)
	}
	ctx, cancel := context.WithTimeout(ctx, wait+answerPatience)
	defer cancel()
	stop := context.AfterFunc(m.interrupted, cancel)
	defer stop()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, fmt.Errorf("process %d serves no profile: %w", c.PID, err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxProfile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("process %d stopped sending its profile: %w", c.PID, err)
	case len(data) > maxProfile:
		return nil, fmt.Errorf("the profile of process %d has over %d MiB; choose a shorter --duration", c.PID, maxProfile>>20)
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("process %d gives no profile (%s): %.200s", c.PID, answer.Status, bytes.TrimSpace(data))
	}
	return data, nil
}

// endpoint is where a process serves its profiles, no network if nowhere.
func (m *measurement) endpoint(pid int) (network, address string) {
	socket := filepath.Join(m.Sockets, strconv.Itoa(m.namedInside(pid))+".sock")
	if info, err := os.Stat(socket); err == nil && info.Mode()&os.ModeSocket != 0 {
		return "unix", shortSocket(socket)
	}
	if m.Address != "" {
		return "tcp", m.Address
	}
	return "", ""
}

// notServed explains how a program serves its profiles.
func (m *measurement) notServed(c candidate) error {
	if c.language == python {
		return fmt.Errorf("process %d (%s) does not measure its memory. Actors and callables of fray's Python package do; "+
			"any other program does after fray.profiles.serve()", c.PID, c.program)
	}
	return fmt.Errorf("process %d (%s) is a Go program that serves no profiles. Actors of fray's Go package do; any other program does with "+
		"_ = profileserver.Start() of github.com/fray-ml/fray/profile/profileserver, or with net/http/pprof at a port that the job names %q", c.PID, c.program, PprofPort)
}
