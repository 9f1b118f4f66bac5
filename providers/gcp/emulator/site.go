package emulator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/emulator/hosts"
	"github.com/fray-ml/fray/providers/gcp/emulator/storage"
)

// Site is an emulator with machines that really run and buckets that are kept.
type Site struct {
	Scenario cloud.Scenario
	Clock    cloud.Clock // nil: the real one; machines know no other
	Project  string      // see cloud.Config
	Listen   string      // "": a free port of 127.0.0.1
	// Dir keeps the disks of the machines and the buckets. Required, absolute.
	Dir     string
	Buckets []storage.Bucket // that are there from the beginning
	Env     []string         // more variables of every process of every machine
	Log     *slog.Logger     // receives problems of machines; nil: they are dropped
}

// Open makes an emulator of a site and serves it until Close, which also powers
// all machines off.
func Open(ctx context.Context, s Site) (*Emulator, error) {
	if s.Listen == "" {
		s.Listen = "127.0.0.1:0"
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return nil, fmt.Errorf("emulate Google Cloud: %w", err)
	}
	e, err := s.build("http://" + l.Addr().String())
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	e.start(l)
	return e, nil
}

func (s Site) build(url string) (*Emulator, error) {
	buckets, err := storage.New(storage.Config{Dir: filepath.Join(s.Dir, "buckets"), Buckets: s.Buckets, Seed: s.Scenario.Seed})
	if err != nil {
		return nil, fmt.Errorf("emulate Cloud Storage: %w", err)
	}
	machines, err := hosts.New(hosts.Config{Dir: filepath.Join(s.Dir, "machines"), Endpoint: url, Env: s.Env, Log: s.Log})
	if err != nil {
		return nil, err
	}
	e := New(Config{
		Cloud:   cloud.Config{Scenario: s.Scenario, Clock: s.Clock, Hosts: machines, Project: s.Project},
		Storage: buckets,
	})
	e.closers = append(e.closers, machines)
	return e, nil
}
