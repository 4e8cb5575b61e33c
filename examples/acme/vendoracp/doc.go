// Package vendoracp is generated from vendor.json: it has the types and methods with which Acme extends the Agent
// Client Protocol.
package vendoracp

//go:generate go tool acpgen -schema ../vendor.json -package vendoracp -overrides ../vendor.overrides
