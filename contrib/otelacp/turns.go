package otelacp

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
)

// turn is a turn in progress. Its span is set once; connection.mu guards the rest.
type turn struct {
	span  trace.Span
	start time.Time

	updates, bytes int64
	first, token   time.Duration // times until the first update and until the first text of the agent; 0 if there was none
	usage          *usage        // the last usage
}

// role is the role of this side.
type role int

const (
	agent role = iota
	client
	roles
)

func (r role) String() string {
	if r == agent {
		return "agent"
	}
	return "client"
}

// roleIn returns the role of this side in a call that agents, or clients, serve.
func roleIn(call *rpc.CallInfo, servedBy role) role {
	if call.Incoming {
		return servedBy
	}
	return roles - 1 - servedBy
}

// follow records the beginning of a call. The function that it returns records the end: whether there is a result, and
// the type of the failure, if any.
func (c *connection) follow(call *rpc.CallInfo, span trace.Span,
	start time.Time) (ended func(ok bool, failure string)) {
	if call.Notification {
		return func(bool, string) {}
	}
	switch call.Method {
	case methodInitialize:
		return func(ok bool, _ string) {
			if ok {
				c.meet(call)
			}
		}
	case methodPrompt:
		t := &turn{span: span, start: start}
		c.begin(call.Session, t)
		return func(ok bool, failure string) { c.endTurn(call, t, ok, failure) }
	case methodPermission:
		return func(ok bool, failure string) { c.endQuestion(call, span, time.Since(start), ok, failure) }
	case methodNew, methodFork:
		return func(ok bool, _ string) {
			if !ok {
				return
			}
			made := resultAs[struct{ SessionID string }](call)
			c.open(made.SessionID, call.Method == methodNew)
			if call.Session == "" {
				span.SetAttributes(conversation(made.SessionID))
			}
		}
	case methodLoad, methodResume:
		opened := c.open(call.Session, false)
		return func(ok bool, _ string) {
			if opened && !ok {
				c.closed(call.Session)
			}
		}
	case methodClose, methodDelete:
		return func(ok bool, _ string) {
			if ok {
				c.closed(call.Session)
			}
		}
	}
	return func(bool, string) {}
}

// meet records the agent's name and version, which are in the answer to initialize.
func (c *connection) meet(call *rpc.CallInfo) {
	info := resultAs[struct {
		AgentInfo struct{ Name, Version string }
	}](call).AgentInfo
	var attrs []attribute.KeyValue
	if info.Name != "" {
		attrs = append(attrs, attribute.String("gen_ai.agent.name", clipped(info.Name)))
	}
	if info.Version != "" {
		attrs = append(attrs, attribute.String("gen_ai.agent.version", clipped(info.Version)))
	}
	c.agent.Store(&attrs)
}

// begin adds a turn to those in progress.
func (c *connection) begin(session string, t *turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turns[session] = append(c.turns[session], t)
}

// turn returns the oldest turn in progress of a session, or nil.
func (c *connection) turn(session string) *turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turnLocked(session)
}

func (c *connection) turnLocked(session string) *turn {
	if turns := c.turns[session]; len(turns) > 0 {
		return turns[0]
	}
	return nil
}

// endTurn records the result of a turn in its span and in metrics.
func (c *connection) endTurn(call *rpc.CallInfo, t *turn, ok bool, failure string) {
	c.mu.Lock()
	turns := slices.DeleteFunc(c.turns[call.Session], func(other *turn) bool { return other == t })
	if c.turns[call.Session] = turns; len(turns) == 0 {
		delete(c.turns, call.Session)
	}
	was := *t
	c.mu.Unlock()

	attrs := []attribute.KeyValue{
		attribute.Int("acp.prompt.size", call.Size),
		attribute.Int64("acp.updates.count", was.updates),
		attribute.Int64("acp.updates.size", was.bytes),
	}
	var stop string
	if ok {
		stop = resultAs[struct{ StopReason string }](call).StopReason
	}
	if stop != "" {
		attrs = append(attrs, attribute.String("acp.stop_reason", clipped(stop)))
	}
	if was.first > 0 {
		attrs = append(attrs, attribute.Float64("acp.time_to_first_update", was.first.Seconds()))
	}
	if was.token > 0 {
		attrs = append(attrs, attribute.Float64("acp.time_to_first_token", was.token.Seconds()))
	}
	if was.usage != nil {
		attrs = append(attrs, attribute.Int64("acp.context.used", was.usage.Used),
			attribute.Int64("acp.context.size", was.usage.Size))
	}
	if who := c.agent.Load(); who != nil {
		attrs = append(attrs, *who...)
	}
	t.span.SetAttributes(attrs...)
	c.metrics.turn(roleIn(call, agent), time.Since(t.start), was.first, stop, failure)
}

// endQuestion records the answer to a permission request in its span and in metrics.
func (c *connection) endQuestion(call *rpc.CallInfo, span trace.Span, wait time.Duration, ok bool, failure string) {
	outcome := ""
	if ok {
		outcome = knownOr(outcomes, resultAs[struct{ Outcome struct{ Outcome string } }](call).Outcome.Outcome)
		span.SetAttributes(attribute.String("acp.permission.outcome", outcome))
	}
	c.metrics.permission(roleIn(call, client), wait, outcome, failure)
}

// update records an update that was sent or received, and returns its turn, or nil.
func (c *connection) update(ctx context.Context, call *rpc.CallInfo) *turn {
	kind, said := describe(call.Params)
	us := roleIn(call, client)
	c.metrics.update(ctx, us, kind)
	spent, currency := 0.0, ""

	c.mu.Lock()
	t := c.turnLocked(call.Session)
	if t != nil {
		t.updates++
		t.bytes += int64(call.Size)
		if words := updateKinds[kind].words; t.first == 0 || words && t.token == 0 {
			since := max(time.Since(t.start), 1)
			if t.first == 0 {
				t.first = since
			}
			if words {
				t.token = since
			}
		}
		if said != nil {
			t.usage = said
		}
	}
	if said != nil && said.Cost != nil {
		if e := c.costs[call.Session]; e != nil {
			spent, currency = e.grow(said.Cost.Amount, said.Cost.Currency)
		}
	}
	c.mu.Unlock()

	if said != nil {
		c.metrics.usage(ctx, us, said, spent, currency)
	}
	return t
}

// expense is the known cost of a session.
type expense struct {
	amount   float64
	currency string
	fresh    bool // the session is new, so all of its cost was incurred here
	known    bool
}

// grow records the cost that the agent has reported, and returns by how much it has grown.
func (e *expense) grow(amount float64, currency string) (float64, string) {
	before := *e
	*e = expense{amount: amount, currency: currency, known: true}
	switch {
	case !before.known && before.fresh:
		return max(amount, 0), currency
	case before.known && before.currency == currency && amount > before.amount:
		return amount - before.amount, currency
	}
	return 0, currency
}

// open starts to track the cost of a session. It returns false if the cost was already tracked.
func (c *connection) open(session string, fresh bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if session == "" || c.costs[session] != nil {
		return false
	}
	c.costs[session] = &expense{fresh: fresh}
	return true
}

// closed stops tracking the cost of a session.
func (c *connection) closed(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.costs, session)
}

// kindOfUpdate is an index into updateKinds.
type kindOfUpdate int

// updateKinds lists the kinds of updates. The first stands for unknown ones, so that a peer cannot invent an unlimited
// number.
var updateKinds = []struct {
	name  string
	words bool // text of the agent
}{
	{name: "_OTHER"},
	{name: "user_message_chunk"},
	{name: "agent_message_chunk", words: true},
	{name: "agent_thought_chunk", words: true},
	{name: "tool_call"},
	{name: "tool_call_update"},
	{name: "plan"},
	{name: "plan_update"},
	{name: "plan_removed"},
	{name: "available_commands_update"},
	{name: "current_mode_update"},
	{name: "config_option_update"},
	{name: "session_info_update"},
	{name: usageUpdate},
	{name: "notice"},
	{name: "compaction_update"},
	{name: "compaction_summary_chunk"},
	{name: "subagent_update"},
	{name: "session_message"},
	{name: "session_message_chunk"},
}

const usageUpdate = "usage_update"

var kindByName = func() map[string]kindOfUpdate {
	kinds := map[string]kindOfUpdate{}
	for i, kind := range updateKinds {
		kinds[kind.name] = kindOfUpdate(i)
	}
	return kinds
}()

// usage holds the values of a usage_update.
type usage struct {
	Used, Size int64
	Cost       *struct {
		Amount   float64
		Currency string
	}
}

// describe returns the kind of an update and its usage, given its parameters.
func describe(params any) (kind kindOfUpdate, said *usage) {
	l := lookAt(params, "update")
	if l == nil {
		return 0, nil
	}
	defer l.release()
	tag, _ := l.decoder.Tag("sessionUpdate")
	kind = kindByName[string(tag)]
	if string(tag) == usageUpdate {
		said = new(usage)
		if err := json.Unmarshal(l.decoder.Raw(), said); err != nil {
			said = nil // it is not a valid usage
		}
	}
	return kind, said
}

// look holds what is needed to inspect parameters.
type look struct {
	text    []byte
	decoder *codec.Decoder
}

var looks = sync.Pool{New: func() any { return &look{decoder: codec.NewDecoder(nil)} }}

// maxLook is how many bytes of memory are kept for the next look.
const maxLook = 64 << 10

// lookAt positions a decoder at the value of a member of parameters, of any type. It returns nil if they do not have
// the member; otherwise done must be called.
func lookAt(params any, member string) *look {
	l := looks.Get().(*look)
	text, err := l.textOf(params)
	l.decoder.Reset(text)
	if err == nil && l.decoder.Kind() == '{' { // an error is reported when they are sent
		for o := l.decoder.Object(); o.Next(); {
			if string(o.Name()) == member {
				return l
			}
			l.decoder.Skip()
		}
	}
	l.release()
	return nil
}

func (l *look) textOf(params any) (text []byte, err error) {
	if raw, ok := params.(json.RawMessage); ok {
		return raw, nil
	}
	if _, ok := params.(codec.Value); ok || codec.IsTagged(params) {
		if text, err = codec.Append(l.text[:0], params); cap(text) <= maxLook {
			l.text = text
		}
		return text, err
	}
	return json.Marshal(params)
}

func (l *look) release() {
	l.decoder.Reset(nil)
	looks.Put(l)
}
