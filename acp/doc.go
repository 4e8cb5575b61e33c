// Package acp is the Agent Client Protocol, version 1, for authors of coding agents and of their clients (editors,
// terminals, bots).
//
// An agent is a set of handlers that [ServeAgent] serves over a transport, usually [Stdio]; a client connects to one
// with [Connect], usually over [Command], which starts the agent. Handlers are structs of functions, [AgentHandlers]
// and [ClientHandlers]. A nil handler is not served; the handlers that are set decide which capabilities are
// advertised. Most agents are easier to write with package acp/agentkit, as this one is:
//
//	package main
//
//	import (
//		"context"
//		"log"
//
//		"github.com/acpgo/sdk/acp"
//		"github.com/acpgo/sdk/acp/agentkit"
//	)
//
//	func main() {
//		sessions := agentkit.NewSessions(agentkit.Config[any]{Prompt: answer})
//		if err := sessions.Serve(context.Background(), acp.Stdio(), nil); err != nil {
//			log.Fatal(err)
//		}
//	}
//
//	func answer(ctx context.Context, t *agentkit.Turn[any], req *acp.PromptRequest) (*acp.PromptResponse, error) {
//		return nil, t.Sayf(ctx, "You said: %s", agentkit.PromptText(req))
//	}
//
// A client starts the agent, opens a session and prints the answer to a prompt:
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"log"
//		"os"
//
//		"github.com/acpgo/sdk/acp"
//	)
//
//	func main() {
//		ctx := context.Background()
//		agent, err := acp.Connect(ctx, acp.Exec(os.Args[1], os.Args[2:]...), acp.ClientHandlers{}, nil)
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer agent.Close()
//		session, err := agent.NewSession(ctx, &acp.NewSessionRequest{Cwd: os.TempDir()})
//		if err != nil {
//			log.Fatal(err)
//		}
//		turn := session.Stream(ctx, acp.TextBlock("hello"))
//		for update := range turn.Updates() {
//			fmt.Print(update.AgentText())
//		}
//		if _, err := turn.Result(); err != nil {
//			log.Fatal(err)
//		}
//	}
//
// The guides explain [concepts], how to write [agents] and how to write [clients].
//
// Of the many names of this package, which are mostly types generated from the protocol's schema, programs need these
// first ("go doc acp.AgentHandlers" describes one):
//
//	agents        ServeAgent, StartAgent, AgentHandlers, AgentOptions, AgentConn, AgentSession, AfterResponse
//	their updates AgentMessageText, AgentThoughtText, UpdatePlan, StartToolCall, UpdateToolCall, CommandsUpdate
//	tool calls    WithKind, WithStatus, WithContent, WithLocation, ToolText, ToolEdit, ToolTerminal
//	permission    ToolCallRef, AllowOnce, AllowAlways, RejectOnce, RejectAlways
//	clients       Connect, ClientHandlers, ClientOptions, ClientConn, ClientSession, Turn
//	their prompts TextBlock, ImageBlock, ResourceLinkBlock; SessionUpdate.AgentText reads an answer
//	permission    PermissionSelected, PermissionCancelled
//	transports    Stdio, Exec, Command, Pipe; packages acp/remote and acp/rpc have others
//	connections   ConnOptions, Hooks, Extensions
//	values        Opt, Some, Null, Meta, Raw
//	errors        Error, CallError, ExitError, ErrAuthRequired, ErrUnsupported, ErrClosed; InvalidParamsf, Public
//
// Names that begin with Agent are for authors of agents, names that begin with Client for authors of clients:
//
//	            the connection: calls of every method    one session of it
//	an agent    AgentConn                                AgentSession: updates, permissions, files, terminals
//	a client    ClientConn                               ClientSession: prompts, modes, config options
//
// A handler whose parameters name a session receives that session; any other handler receives the connection. The side
// that made the connection also ends it.
//
// # Turns
//
// There are two ways to run a turn from a client. [ClientSession.Prompt] blocks, and the updates go to the client's
// handler SessionUpdate; it suits clients that show the updates of all sessions in one place. [ClientSession.Stream]
// returns a [Turn] whose updates are read in a loop; it suits programs that run one turn at a time.
//
// There are two equivalent ways to cancel a turn: end the context of Prompt or Stream, or call [ClientSession.Cancel]
// or [Turn.Cancel]. The connection sends session/cancel, answers open permission requests as cancelled, still accepts
// later updates, and waits for the agent's answer. The turn returns that answer, usually with [StopReasonCancelled]. If
// no answer arrives within [ConnOptions].CancelGrace, it returns the cause of the context.
//
// In an agent, the context of a Prompt handler ends with the cause [ErrTurnCancelled] when the client cancels the turn.
// Whatever the handler then returns, the prompt is answered with [StopReasonCancelled]; see [AgentHandlers].
//
// # What is checked
//
// Messages that this side sends are valid by the protocol's schema, as far as the schema defines types, required
// members and bounds; values of Meta and other raw JSON are only checked to be JSON. Beyond the schema, calls, updates
// and results of handlers are checked as follows: ids are not empty; paths are absolute (working directories, files,
// diffs, locations, commands of MCP servers); lines count from 1; permission options and config options have unique
// ids; boolean config options go only to clients that support them; a mode, a config option and its value, and the
// chosen permission option are among those that were offered. The following enums must have values that the protocol
// defines: the kind and the status of a tool call, the priority and the status of a plan's entry, the kind of a
// permission option, the roles in the annotations of content, the type and the formats of a form, and the stop reason.
// A value outside these lists is refused unless this process has read it, so that values from a newer peer can be
// passed on.
//
// A call that fails such a check is not sent: its error matches [ErrInvalidParams] and names the member. If a handler's
// result fails one, the peer gets an internal error that names the member, and a warning is logged to
// [ConnOptions].Logger. A warning is also logged if an agent's session offers modes or config options and no handler
// sets them. A nil request is an empty one. Calls that the peer did not advertise fail with [ErrUnsupported] and are
// not sent. Values that cannot be encoded, such as a union without a variant, are not sent either; the error is a
// [codec.Error], which names the member.
//
// Messages from the peer are read as leniently as the schema permits. They are refused with [ErrInvalidParams] if they
// do not fit the schema, if a path is not absolute, if a line is 0, or if they need something that this side did not
// advertise: a type of MCP servers, an authentication method, a mode of elicitation. A command of an MCP server that is
// not an absolute path is reported to Hooks.Repair and kept.
//
// Facts that only the program knows are not checked: whether a session exists, whether a tool call was started before
// it is updated, whether a file is within the session's directories. Prompt content and additional directories that an
// agent did not advertise still reach its handlers. Calls on the raw connection, from [AgentConn.RPC] and
// [ClientConn.RPC], are not checked at all.
//
// Initialize comes first: until it has been answered, neither side sends or serves anything else. Calls fail with
// [ErrInvalidRequest] and are not sent; requests are refused with it; notifications, including session/cancel, are
// dropped and reported to Hooks.Invalid.
//
// # Experimental features
//
// Features that the protocol has not made stable yet are marked Experimental in the documentation, and are off. A
// program enables those that it uses in [AgentOptions].Experimental or [ClientOptions].Experimental, such as
// [FeatureFork], or [AllFeatures]. Features that are not enabled are not advertised, not served and not sent: if
// handlers or options use one, [ServeAgent] and [Connect] fail with [ErrExperimental], as do calls and results that use
// one. What a peer sends is decoded in any case, but if it is malformed, only a program that has enabled the feature
// refuses it; others read the member as absent, and the variant as the Unknown one. When a feature becomes stable, its
// names stay the same, and its constant no longer has an effect.
//
// # Values
//
// Types are generated from the protocol's schema. A member that may be absent or null is an [Opt]: [Some] and [Null]
// make one, and the methods Get, Value and Or read it ("go doc codec.Opt" has them all). The values of an enum are
// constants whose names begin with its type; "go doc acp.ToolKindRead" lists all of a ToolKind. A union is a struct
// with the field Variant, an interface that its variants implement; use a type switch to distinguish them. A variant
// that only a newer peer knows becomes the Unknown variant, which keeps it byte for byte. Values are encoded strictly
// and decoded as leniently as the schema permits; repairs are reported to [Hooks].
//
// Constructors come in two kinds. Common values have a short constructor, named after the value without New, which
// takes the required members as plain arguments: [TextBlock] and other blocks, [AgentMessageText], [StartToolCall],
// [UpdateToolCall] and other updates, [ToolText], [ToolDiff] and other content of tool calls, [AllowOnce] and other
// permission options, [SelectOption] and other config options. Every other variant has a constructor whose name is New,
// the union and the variant, and which takes the variant's payload: [NewMCPServerStdio].
//
// # Errors
//
// When a peer answers a call with an error, the call returns it as an [*Error] in a [*CallError]; errors.Is matches it
// with constants such as [ErrAuthRequired]. When a handler returns an *Error, one of these constants or an error
// wrapped by [Public], the peer gets it. For any other error the peer gets an internal error without text, and the text
// is logged. After the connection has ended, errors match [ErrClosed] and give the reason.
//
// [concepts]: https://github.com/acpgo/sdk/blob/main/docs/concepts.md
// [agents]: https://github.com/acpgo/sdk/blob/main/docs/agents.md
// [clients]: https://github.com/acpgo/sdk/blob/main/docs/clients.md
package acp

//go:generate go run ../cmd/acpgen
