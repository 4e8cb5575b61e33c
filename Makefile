GO          ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
BENCHSTAT   := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
FUZZTIME    ?= 1m
BENCHCOUNT  ?= 6

.DEFAULT_GOAL := help

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

generate: ## regenerate the Go code from the schemas
	$(GO) generate ./...

check: ## everything that must hold before a commit: form, analysis, generated code, tests
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	$(GO) vet ./...
	GOOS=windows $(GO) vet ./acp/... ./internal/...
	GOOS=darwin $(GO) vet ./acp/... ./internal/...
	$(GO) run $(STATICCHECK) ./...
	@diff="$$($(GO) fix -diff ./...)"; test -z "$$diff" || { echo "$$diff"; exit 1; }
	$(GO) run ./cmd/acpgen -check
	cd bench && $(GO) vet ./... && $(GO) test ./...
	$(MAKE) test

test: ## run all tests, with the race detector; npm, if there is one, brings the TypeScript peer
	$(GO) test -race ./...

demo: ## regenerate, build the examples, and run whole turns between them
	@$(GO) run ./cmd/acpgen -check
	$(GO) generate ./...
	@echo "regenerated: nothing changed"
	@mkdir -p bin
	$(GO) build -o bin/ ./examples/agent ./examples/client
	@root="$$(mktemp -d)" && bin/client -root "$$root" -script examples/client/testdata/demo.txt -- bin/agent; \
		status=$$?; rm -rf "$$root"; exit $$status

bench: ## compare the codec with other libraries on the same messages, then run this module's own benchmarks
	cd bench && $(GO) test -run '^$$' -bench . -count $(BENCHCOUNT) -timeout 60m | tee bench.txt
	$(GO) run $(BENCHSTAT) -row '.name /message' -col /library bench/bench.txt
	$(GO) test -run '^$$' -bench . -benchmem ./acp/... ./conformance

fuzz: ## fuzz each target for FUZZTIME
	@set -e; for package in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "$$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done

schema: ## fetch the schemas of another release: make schema VERSION=x.y.z
	@test -n "$(VERSION)" || { echo "usage: make schema VERSION=x.y.z"; exit 2; }
	sh schema/fetch.sh "$(VERSION)"

.PHONY: help generate check test demo bench fuzz schema
