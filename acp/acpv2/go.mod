module github.com/acpgo/sdk/acp/acpv2

go 1.26.0

require (
	github.com/acpgo/sdk v0.0.0
	github.com/google/go-cmp v0.7.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/santhosh-tekuri/jsonschema/v5 v5.3.1 // indirect
	github.com/sourcegraph/jsonrpc2 v0.2.3 // indirect
)

replace github.com/acpgo/sdk => ../../
