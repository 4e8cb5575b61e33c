module example.com/acme

go 1.26.0

// The module is not published yet. Until it is, a program uses a clone of it.
replace github.com/acpgo/sdk => ../..

tool github.com/acpgo/sdk/cmd/acpgen

require github.com/acpgo/sdk v0.0.0

require (
	dario.cat/mergo v1.0.2 // indirect
	github.com/atombender/go-jsonschema v0.24.1 // indirect
	github.com/dave/jennifer v1.7.1 // indirect
	github.com/goccy/go-yaml v1.19.2 // indirect
	github.com/sourcegraph/jsonrpc2 v0.2.3 // indirect
)
