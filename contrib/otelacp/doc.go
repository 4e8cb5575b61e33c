// Package otelacp makes OpenTelemetry traces and metrics of ACP connections: a span for every call and every request
// that is served, the trace context in _meta so that client, proxies and agent share one trace, and metrics of turns. It
// does not export anything and sets nothing up: the author's TracerProvider and MeterProvider do, and read the OTEL_*
// environment. It makes no span for an update, and puts no text of prompts, no path and no input of a tool into spans or
// metrics.
//
// [Instrument] is the only call, for agents, clients and proxies alike:
//
//	opts.Conn.Hooks = otelacp.Instrument(opts.Conn.Hooks, nil)
//
// # Spans
//
// A call of this side is a span of kind CLIENT, a request or notification that this side serves is one of kind SERVER,
// each named by its method. Not among them are session/update, which comes thousands of times in a turn, what is refused
// before it reaches a handler, and the cancellations that the runtime sends by itself. A failure sets the status; that
// something was cancelled is none.
//
//	rpc.system                 jsonrpc
//	rpc.method                 the method
//	jsonrpc.request.id         of a request that was sent or served
//	gen_ai.conversation.id     the session; of session/new the new one
//	rpc.response.status_code   the code of a JSON-RPC error
//	error.type                 that code, or what else has failed: closed, timeout, invalid, overflow, unsupported, _OTHER
//	acp.cancelled              true if it failed because it was cancelled
//
// The span of session/prompt, on either side, is the turn:
//
//	acp.stop_reason            as in the answer
//	gen_ai.agent.name          from initialize
//	gen_ai.agent.version       from initialize
//	acp.prompt.size            bytes of the parameters
//	acp.updates.count          how many updates were sent, or received
//	acp.updates.size           bytes of their parameters
//	acp.time_to_first_update   seconds
//	acp.time_to_first_token    seconds until the first piece of the agent's message or of its thoughts
//	acp.context.used, .size    of the last usage_update, in tokens
//
// The span of session/request_permission has acp.permission.outcome: selected or cancelled.
//
// # Trace context
//
// The members traceparent, tracestate and baggage of _meta in the parameters are those of W3C. What the caller of a
// method has set there is never changed, nor any other member; parameters that are no object, and session/update, get
// none. A handler's context has the span and the baggage, so that what it calls belongs to the same trace. A request
// that brings no trace context, and that belongs to a session with a turn in progress, is a child of the turn. One that
// brings a malformed one begins a new trace.
//
// A proxy that forwards parameters as they are leaves the trace context of the one before it in place, so that the
// next one is a child of that, beside the proxy's own spans. In a proxy/successor request the trace context of the proxy
// goes into the _meta of the envelope. That of MCP over ACP, in the inner parameters of mcp/message, is MCP's own.
//
// # Metrics
//
//	acp.turn.duration               s        histogram
//	acp.turn.time_to_first_update   s        histogram
//	acp.permission.wait             s        histogram, from the question to the answer
//	acp.updates                     {update} counter by kind
//	acp.repairs                     {repair} counter by method
//	acp.queue.size                  By       what waits in connections, see [rpc.Load], by kind
//	acp.context.used, .size         {token}  histograms of what usage_update says
//	acp.cost                        {unit}   counter by currency: by how much the cost of sessions has grown
//
// Those of turns, permissions and updates have acp.role: agent or client, the role of this side. The cost of a session
// that was loaded or resumed counts from the first update on.
//
// Turns, updates and metrics are those of version 1, also with unstable features. Connections of the draft of version 2
// get spans and trace context, but their turns are not followed.
package otelacp
