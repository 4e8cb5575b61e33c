module github.com/acpgo/sdk/examples/dual

go 1.26.0

replace (
	github.com/acpgo/sdk => ../..
	github.com/acpgo/sdk/acp/acpv2 => ../../acp/acpv2
)

require (
	github.com/acpgo/sdk v0.0.0
	github.com/acpgo/sdk/acp/acpv2 v0.0.0
	github.com/google/go-cmp v0.7.0
)

require (
	github.com/santhosh-tekuri/jsonschema/v5 v5.3.1 // indirect
	github.com/sourcegraph/jsonrpc2 v0.2.3 // indirect
	go.uber.org/goleak v1.3.0 // indirect
)
