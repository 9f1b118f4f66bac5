# fray needs Go, Python 3 and git. Whatever else a target needs, it installs
# into .tools/ by itself, at the versions that scripts/tools pins.

SHELL := bash
.DEFAULT_GOAL := build
.PHONY: build test test-engines soak lint vulnerabilities generate bench demo golden release

VERSION := $(shell scripts/version)
LDFLAGS := -s -w -X github.com/fray-ml/fray/release.version=$(VERSION)

# The version is stamped by LDFLAGS; asking git once more per build only fails
# where the checkout belongs to another user. Buckets are used over HTTP: without their
# gRPC client 148 packages need not be compiled.
export GOFLAGS := -buildvcs=false -tags=disable_grpc_modules
export PATH := $(CURDIR)/.tools/bin:$(PATH)

build: ## one static binary, ./fray
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o fray ./cmd/fray

test: ## set up and run every test
	scripts/test

test-engines: ## tests against real Ray, Iris and marin-zephyr, each in environments of its own
	scripts/test-engines

soak: ## model-based tests at full length, with their step counts
	scripts/soak

lint: ## linters, formatting, tidiness, generated code
	scripts/lint

vulnerabilities: ## known vulnerabilities in what fray calls; needs their database
	scripts/vulnerabilities

generate: ## rewrite generated code
	go generate ./...
	scripts/python-generate

bench: ## benchmarks, each beside what it is compared with
	scripts/bench

demo: build ## plan, apply, look at and destroy examples/quickstart.hcl
	scripts/demo

golden: ## rewrite golden files; read the diff before committing
	scripts/golden

release: ## dist/: a binary and a wheel for each platform, and SHA256SUMS
	scripts/release '$(VERSION)' '$(LDFLAGS)'
