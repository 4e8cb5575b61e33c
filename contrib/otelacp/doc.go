// Package otelacp produces OpenTelemetry traces and metrics for ACP connections: a span for every call and every
// request that is served, the trace context in _meta so that client, proxies and agent share one trace, and metrics of
// turns. It does not export anything or set anything up: the author's TracerProvider and MeterProvider do, and read the
// OTEL_* environment. It does not make spans for updates, and does not put the text of prompts, paths, or the input of
// tools into spans or metrics.
//
// [Instrument] is the only function, for agents, clients and proxies alike:
//
//	opts.Conn.Hooks = otelacp.Instrument(opts.Conn.Hooks, nil)
//
// # Spans
//
// A call of this side is a span of kind CLIENT, and a request or notification that this side serves is a span of kind
// SERVER; both are named by their method. There are no spans for session/update, which occurs thousands of times in a
// turn, for messages that are refused before they reach a handler, and for cancellations that the runtime sends itself.
// A failure sets the status; a cancellation is not a failure.
//
//	rpc.system                 jsonrpc
//	rpc.method                 the method
//	jsonrpc.request.id         of a request that was sent or served
//	gen_ai.conversation.id     the session; for session/new, the new one
//	rpc.response.status_code   the code of a JSON-RPC error
//	error.type                 that code, or the kind of failure: closed, timeout, invalid, overflow, unsupported, _OTHER
//	acp.cancelled              true if it failed because it was cancelled
//
// The span of session/prompt, on either side, is the turn:
//
//	acp.stop_reason            as in the answer
//	gen_ai.agent.name          from initialize
//	gen_ai.agent.version       from initialize
//	acp.prompt.size            bytes of the parameters
//	acp.updates.count          number of updates sent or received
//	acp.updates.size           bytes of their parameters
//	acp.time_to_first_update   seconds
//	acp.time_to_first_token    seconds until the first piece of the agent's message or of its thoughts
//	acp.context.used, .size    of the last usage_update, in tokens
//
// The span of session/request_permission has acp.permission.outcome: selected or cancelled.
//
// # Trace context
//
// The members traceparent, tracestate and baggage of _meta in the parameters are those of W3C. Members that the caller
// of a method has set are never changed. Parameters that are not an object, and those of session/update, get no trace
// context. A handler's context has the span and the baggage, so that its calls belong to the same trace. A request
// without trace context that belongs to a session with a turn in progress is a child of the turn. A request with
// malformed trace context begins a new trace.
//
// A proxy that forwards parameters unchanged keeps the trace context of its predecessor, so that the spans of its
// successor are children of that one, beside the proxy's own spans. In a proxy/successor request the trace context of
// the proxy goes into the _meta of the envelope. That of MCP over ACP, in the inner parameters of mcp/message, is MCP's
// own.
//
// # Metrics
//
//	acp.turn.duration               s        histogram
//	acp.turn.time_to_first_update   s        histogram
//	acp.permission.wait             s        histogram, from the question to the answer
//	acp.updates                     {update} counter by kind
//	acp.repairs                     {repair} counter by method
//	acp.queue.size                  By       bytes held by connections, see [rpc.Load], by kind
//	acp.context.used, .size         {token}  histograms of what usage_update says
//	acp.cost                        {unit}   counter by currency: by how much the cost of sessions has grown
//
// The metrics of turns, permissions and updates have the attribute acp.role: agent or client, the role of this side.
// The cost of a session that was loaded or resumed counts from the first update on.
//
// Turns, updates and metrics are supported for version 1, including its unstable features. Connections of version 2
// get spans and trace context, but their turns are not followed.
package otelacp
