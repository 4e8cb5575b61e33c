// Command guard answers an agent's permission requests by rules, and passes on the rest: guard -rules FILE -- AGENT
// [arguments].
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/proxy"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/view"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("guard: ")
	file := flag.String("rules", "rules.json", "the `file` of rules, as acp/policy reads it")
	flag.Parse()
	rules, err := policy.Load(*file, &policy.Options{Resolve: policy.ResolveLinks})
	if err != nil {
		log.Fatal(err)
	}
	var agent rpc.Transport // without one, this is a component that a conductor starts
	if flag.NArg() > 0 {
		cmd := exec.Command(flag.Arg(0), flag.Args()[1:]...)
		cmd.Stderr = os.Stderr
		agent = rpc.Command(cmd)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := proxy.Serve(ctx, rpc.Stdio(), agent, guard(rules), nil); err != nil {
		log.Fatal(err)
	}
}

// guard answers requests for permission that the rules decide about.
func guard(rules *policy.Policy) proxy.Hooks {
	var sessions view.Sessions // a request may carry a part of its tool call only
	return proxy.Hooks{
		SessionUpdate: func(ctx context.Context, n *acp.SessionNotification,
			next func(context.Context, *acp.SessionNotification) error) error {
			if err := sessions.Update(ctx, nil, n); err != nil {
				log.Print(err)
			}
			return next(ctx, n)
		},
		RequestPermission: func(ctx context.Context, req *acp.RequestPermissionRequest,
			next func(context.Context, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error),
		) (*acp.RequestPermissionResponse, error) {
			call, known := sessions.ToolCall(req.SessionID, req.ToolCall.ToolCallID)
			if !known {
				call = acp.ToolCall{ToolCallID: req.ToolCall.ToolCallID}
			}
			call.Apply(req.ToolCall)
			d, err := rules.Explain(policy.Request{ToolCall: call}) // rules for agents and directories need the other fields
			if err != nil {
				return nil, err
			}
			i := slices.IndexFunc(req.Options, func(o acp.PermissionOption) bool { return o.Kind == d.Kind() })
			if i < 0 { // undecided, or the agent does not offer it
				return next(ctx, req)
			}
			log.Printf("%s %q: %s", d.Kind(), call.Title, d.Why)
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(req.Options[i].OptionID)}, nil
		},
		CloseSession: func(ctx context.Context, req *acp.CloseSessionRequest,
			next func(context.Context, *acp.CloseSessionRequest) (*acp.CloseSessionResponse, error),
		) (*acp.CloseSessionResponse, error) {
			res, err := next(ctx, req)
			sessions.Remove(req.SessionID)
			return res, err
		},
	}
}
