// Package forks advertises session/fork, which the protocol has only in its unstable form, in an answer to initialize whose
// type does not know it. Packages agentkit of all versions of the protocol serve it.
package forks

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// Method is session/fork.
const Method = "session/fork"

// mcpKey is the context key under which the handler finds what the agent has advertised.
type mcpKey struct{}

// MCP is what the agent has advertised of MCP servers, for the handler of session/fork. Without Advertise it is nothing.
func MCP[M any](ctx context.Context) M {
	mcp, _ := ctx.Value(mcpKey{}).(M)
	return mcp
}

// Advertise is a hook around one that may be nil: it adds the member at path, with an empty object, to the answer to
// initialize.
func Advertise[M any](serve rpc.Middleware, mcp M, path ...string) rpc.Middleware {
	return func(ctx context.Context, call *rpc.CallInfo, next func(context.Context) error) error {
		if call.Method == Method {
			ctx = context.WithValue(ctx, mcpKey{}, mcp)
		}
		var err error
		if serve == nil {
			err = next(ctx)
		} else {
			err = serve(ctx, call, next)
		}
		if err != nil || call.Method != acp.MethodInitialize {
			return err
		}
		text, err := json.Marshal(call.Result)
		if err == nil {
			call.Result, err = withMember(text, json.RawMessage(`{}`), path...)
		}
		if err != nil {
			return fmt.Errorf("the answer: %w", err)
		}
		return nil
	}
}

// withMember sets a member of an object, at a path of objects, which are made where there are none.
func withMember(object, value json.RawMessage, path ...string) (json.RawMessage, error) {
	if len(path) == 0 {
		return value, nil
	}
	members := map[string]json.RawMessage{}
	if object != nil {
		if err := json.Unmarshal(object, &members); err != nil {
			return nil, err
		}
	}
	member, err := withMember(members[path[0]], value, path[1:]...)
	if err != nil {
		return nil, err
	}
	members[path[0]] = member
	return json.Marshal(members)
}
