package conformance

import (
	"sync"

	"github.com/acpgo/sdk/conformance/internal/judge"
	"github.com/acpgo/sdk/conformance/internal/rules"
)

// Judge checks the messages of one connection by the schema and by the rules of the protocol. Its methods must be
// called in the order of the messages, and are safe for concurrent use. Its memory is bounded.
//
// A judge may be at either end of the connection or between them. Messages that cross in transit pass the two ends in
// different orders, and the judge sees only one order. It reports a finding only if no order explains the messages.
type Judge struct {
	mu    sync.Mutex
	judge *judge.Judge
}

// JudgeOptions configures a Judge.
type JudgeOptions struct {
	// Rules reports whether a rule is applied. If it is nil, all rules are applied. NewJudge calls it once for each
	// rule. Findings of the schema and of JSON-RPC are reported in any case.
	Rules func(*Rule) bool
}

// NewJudge returns a judge for a new connection. If schema is nil, the judge uses version 1 or 2, as the connection
// negotiates, with experimental features, because a recording does not show whether both sides agreed to use them.
// Options may be nil.
func NewJudge(schema *Schema, options *JudgeOptions) *Judge {
	if schema == nil {
		schema = published()
	}
	var applies func(*judge.Rule) bool
	if options != nil && options.Rules != nil {
		applied := map[string]bool{}
		for _, r := range Rules() {
			applied[r.ID] = options.Rules(&r)
		}
		applies = func(r *judge.Rule) bool { return applied[r.ID] }
	}
	return &Judge{judge: judge.New(schema, rules.Indexes(), applies)}
}

var published = sync.OnceValue(func() *Schema { return Negotiated(V1Unstable(), V2Unstable()) })

// Message checks one message and returns its findings, those of the schema first. It uses only m.Direction and m.Line,
// and does not retain the line.
func (j *Judge) Message(m Message) []Finding {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.judge.Message(m.Direction, m.Line)
}

// Closed records which side closed the connection. Call it before End; only the first call counts. Without it, the end
// of the connection proves less: a request may be unanswered because its sender has left.
func (j *Judge) Closed(by Side) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.judge.Closed(by)
}

// End returns the findings that the end of the connection proves, such as a request that was never answered or a
// terminal that was never released. They are about earlier messages, identified by Number. Only the first call returns
// any.
func (j *Judge) End() []Finding {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.judge.End()
}

// Version returns the version of the protocol that both sides have agreed on, or 0 before that.
func (j *Judge) Version() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.judge.Version()
}
