// The judge of one connection: the schema and the rules.

package conformance

import (
	"sync"

	"github.com/acpgo/sdk/conformance/internal/judge"
	"github.com/acpgo/sdk/conformance/internal/rules"
)

// Judge checks the messages of one connection by the schema and by the rules of the protocol, in the order in which
// they passed. Its memory is bounded. Its methods are safe for concurrent use; the order of the calls is the order of
// the messages.
//
// A judge may stand at either end or between them. It sees one order of messages; two that cross on their way pass each
// end in another order. A finding is reported only if no order explains what was seen.
type Judge struct {
	mu    sync.Mutex
	judge *judge.Judge
}

// JudgeOptions configure a Judge.
type JudgeOptions struct {
	// Rules says whether a rule is applied; nil applies all. It is called once for each rule, by NewJudge. What the schema and
	// JSON-RPC say is reported in any case.
	Rules func(*Rule) bool
}

// NewJudge returns a judge for a new connection. The schema nil means what was published: versions 1 and 2, as the
// connection negotiates, each with its experimental features, since a recording does not say whether both sides agreed to
// use them. Options may be nil.
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

// Message checks one message and returns its findings, those of the schema first. It reads the message's Direction, Line
// and Time, and keeps nothing of the line.
func (j *Judge) Message(m Message) []Finding {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.judge.Message(m.Direction, m.Line, m.Time)
}

// Closed says that a side closed the connection, before End; only the first call counts. If nobody says it, the end of the
// connection proves less: a request may then be unanswered because the one who asked has left.
func (j *Judge) Closed(by Side) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.judge.Closed(by)
}

// End returns what the end of the connection shows: a request that was never answered, a terminal that was never released.
// The findings are about earlier messages, which their Number names. After the first call there is nothing more to say.
func (j *Judge) End() []Finding {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.judge.End()
}

// Version is the version of the protocol that both sides have agreed on, 0 before.
func (j *Judge) Version() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.judge.Version()
}
