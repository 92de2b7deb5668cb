# Everything a person or the CI does here. `make` alone lists it.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# Works from an empty environment: Go outside PATH, no HOME, somebody's GOFLAGS.
export PATH := $(PATH):/usr/local/go/bin:/usr/sbin:/sbin
export GOFLAGS := -mod=readonly -buildvcs=false
ifeq ($(strip $(HOME)),)
export GOCACHE ?= $(CURDIR)/.cache/go-build
export GOPATH ?= $(CURDIR)/.cache/go
export STATICCHECK_CACHE ?= $(CURDIR)/.cache/staticcheck
endif

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null)
TEST_TIMEOUT := 40m

.PHONY: help demo run build package test lint lint-deploy bench fuzz torture negative-controls engines clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' Makefile

demo: engines build ## upload a scanned PDF, read its context, withdraw it; leaves nothing behind
	@scripts/demo.sh

run: engines build ## keep a service running on 127.0.0.1:8080, data in .accession-data
	@scripts/run.sh

# grpcnotrace leaves out pages of gRPC's whose templates keep every method in the binary: 11 MB.
build: ## the static binary bin/accession
	CGO_ENABLED=0 go build -tags grpcnotrace -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/accession ./cmd/accession

package: ## release archives, Debian packages, bills of materials and checksums, in bin/packages
	@scripts/package.sh

test: ## everything: engines, lint, all tests against the real engines, race detector on
	@scripts/engines.sh --for-tests
	@$(MAKE) --no-print-directory lint
	@TEST_TIMEOUT=$(TEST_TIMEOUT) scripts/test.sh

lint: ## gofmt, file length, go vet, staticcheck, fences between packages
	@scripts/lint.sh

lint-deploy: ## the files under deploy/, by promtool, systemd-analyze and helm
	@scripts/lint-deploy.sh

# One package after the other: two benchmarks at once measure each other.
bench: engines ## each job beside its reference, as one table (.cache/bench.md); then quality, then Go benchmarks
	@mkdir -p .cache && rm -f .cache/bench.md
	CGO_ENABLED=0 go run ./bench -table .cache/bench.md
	CGO_ENABLED=0 go run ./bench/requests -rows all -table .cache/bench.md
	CGO_ENABLED=0 go run ./bench/quality -only pipeline -rounds 5 -table .cache/bench.md
	@echo; cat .cache/bench.md
	CGO_ENABLED=0 go run ./bench/quality -only recall,ocr,summary,robust
	CGO_ENABLED=0 go test -run '^$$' -bench . -benchmem -p 1 -timeout 20m ./...

fuzz: ## every decoder of outside bytes, a minute each
	@scripts/fuzz.sh

torture: ## the long form of every test that makes things fail, from one seed: hours
	@scripts/engines.sh --for-tests
	@scripts/torture.sh

negative-controls: ## plant ten known bugs, one after the other: the tests must catch each
	@scripts/engines.sh --for-tests
	@scripts/negative-controls.sh

engines: ## install clamd and tesseract where they are missing
	@scripts/engines.sh

clean: ## remove what was built (a service's data in .accession-data stays)
	@if [ -d .cache ]; then chmod -R u+w .cache; fi
	rm -rf bin .cache
