module github.com/acpgo/sdk/bench

go 1.26.0

require (
	github.com/acpgo/sdk v0.0.0
	github.com/coder/acp-go-sdk v0.13.0
	golang.org/x/tools v0.52.0
)

require (
	github.com/sourcegraph/jsonrpc2 v0.2.3 // indirect
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
)

replace github.com/acpgo/sdk => ../
