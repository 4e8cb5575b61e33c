package show

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/report"
	"github.com/acpgo/sdk/internal/plain"
)

// Stats counts messages. Its memory is bounded: with very many methods, sessions and delays, it is less exact.
type Stats struct {
	messages, bytes [3]int // by direction
	last            time.Duration
	timed           bool
	methods         map[methodKey]*methodStats
	sessions        map[string]*SessionStats
	order           []*SessionStats
	skipped         int // messages of methods and sessions beyond the limits
}

// methodKey is a method with its sender. Responses are counted with their requests.
type methodKey struct {
	sender conformance.Side
	method string
	update string
}

type methodStats struct {
	MethodStats
	timed  int // responses with a delay
	delays []time.Duration
}

// The limits for separate counts.
const (
	maxKeys   = 1000
	maxDelays = 1 << 16 // of a method; beyond that a random sample is kept
)

// NewStats returns empty statistics.
func NewStats() *Stats {
	return &Stats{methods: map[methodKey]*methodStats{}, sessions: map[string]*SessionStats{}}
}

// Add counts a message.
func (s *Stats) Add(m *Message) {
	s.messages[m.Direction]++
	s.bytes[m.Direction] += len(m.Text) + 1 // including the newline
	if m.Timed {
		s.timed, s.last = true, max(s.last, m.Since)
	}
	s.method(m)
	s.session(m)
}

func (s *Stats) method(m *Message) {
	key := methodKey{m.Direction.Sender(), m.Method, m.Update}
	answer := m.Kind == conformance.Response || m.Kind == conformance.ErrorReply
	if answer && m.Method != "" {
		key.sender = key.sender.Peer() // the sender of the request
	}
	if m.Kind == "" {
		key.method = "(no message)"
	} else if m.Method == "" {
		key.method = "(no matching request)"
	}
	key.method, key.update = clip(key.method, 4*maxString), clip(key.update, 4*maxString)
	c := s.methods[key]
	if c == nil {
		if len(s.methods) >= maxKeys {
			s.skipped++
			return
		}
		c = &methodStats{MethodStats: MethodStats{From: key.sender.String(), Method: key.method, Update: key.update}}
		s.methods[key] = c
	}
	if !answer {
		c.Count++
		c.Bytes += len(m.Text) + 1
		return
	}
	c.Answers++
	c.AnswerBytes += len(m.Text) + 1
	if m.Kind == conformance.ErrorReply {
		c.Errors++
	}
	if m.Delayed {
		if c.timed++; len(c.delays) < maxDelays {
			c.delays = append(c.delays, m.Delay)
		} else if i := rand.IntN(c.timed); i < maxDelays {
			c.delays[i] = m.Delay
		}
	}
}

func (s *Stats) session(m *Message) {
	if m.Session == "" {
		return
	}
	id := clip(m.Session, 4*maxString)
	c := s.sessions[id]
	if c == nil {
		if len(s.sessions) >= maxKeys {
			s.skipped++
			return
		}
		c = &SessionStats{ID: id, Usage: map[string]float64{}}
		s.sessions[id] = c
		s.order = append(s.order, c)
	}
	c.Messages++
	prompt := m.Method == "session/prompt"
	if prompt && m.Kind == conformance.Request {
		c.Prompts++
	}
	if update := m.decoded.Update; update != nil && m.Update == "usage_update" {
		c.ContextUsed = cmp.Or(update.Used, c.ContextUsed)
		c.ContextSize = cmp.Or(update.Size, c.ContextSize, new(float64))
		if update.Cost != nil {
			c.Cost = map[string]float64{clip(update.Cost.Currency, 20): update.Cost.Amount}
			delete(c.Cost, "")
		}
	}
	if usage := m.decoded.Usage; prompt && m.Kind == conformance.Response && usage != nil {
		c.UsageReports++
		for _, name := range slices.Sorted(maps.Keys(usage)) {
			if n, err := strconv.ParseFloat(string(usage[name]), 64); err == nil && (len(c.Usage) < 20 || c.Usage[name] > 0) {
				c.Usage[name] += n
			}
		}
	}
}

// The JSON document of the statistics.
type (
	// Document has all statistics.
	Document struct {
		Messages   int            `json:"messages"`
		Bytes      int            `json:"bytes"`
		Client     SideStats      `json:"client"` // what the client wrote
		Agent      SideStats      `json:"agent"`
		DurationMs *float64       `json:"durationMs,omitempty"`
		Methods    []MethodStats  `json:"methods"`
		Sessions   []SessionStats `json:"sessions"`
		Total      SessionStats   `json:"allSessions"`
		Uncounted  int            `json:"uncounted,omitempty"`
	}
	// SideStats has those of what one side wrote.
	SideStats struct {
		Messages int `json:"messages"`
		Bytes    int `json:"bytes"`
	}
	// MethodStats has those of a method.
	MethodStats struct {
		From        string      `json:"from"`
		Method      string      `json:"method"`
		Update      string      `json:"update,omitempty"`
		Count       int         `json:"count"`
		Bytes       int         `json:"bytes"`
		Answers     int         `json:"answers,omitempty"`
		Errors      int         `json:"errors,omitempty"`
		AnswerBytes int         `json:"answerBytes,omitempty"`
		Delay       *DelayStats `json:"delayMs,omitempty"`
	}
	// DelayStats has those of the time that responses took.
	DelayStats struct {
		P50 float64 `json:"p50"`
		P95 float64 `json:"p95"`
		P99 float64 `json:"p99"`
		Max float64 `json:"max"`
	}
	// SessionStats has what an agent reports about a session. The context and the cost are the last ones.
	SessionStats struct {
		ID           string             `json:"id,omitempty"`
		Messages     int                `json:"messages"`
		Prompts      int                `json:"prompts"`
		ContextUsed  *float64           `json:"contextUsed,omitempty"` // tokens
		ContextSize  *float64           `json:"contextSize,omitempty"`
		Cost         map[string]float64 `json:"cost,omitempty"`         // by currency
		UsageReports int                `json:"usageReports,omitempty"` // responses to prompts with usage
		Usage        map[string]float64 `json:"usage,omitempty"`        // their sum
	}
)

// Document returns the statistics so far.
func (s *Stats) Document() Document {
	side := func(d conformance.Direction) SideStats { return SideStats{s.messages[d], s.bytes[d]} }
	doc := Document{
		Client: side(conformance.ToAgent), Agent: side(conformance.ToClient),
		Methods: []MethodStats{}, Sessions: []SessionStats{}, Uncounted: s.skipped,
	}
	doc.Messages, doc.Bytes = doc.Client.Messages+doc.Agent.Messages, doc.Client.Bytes+doc.Agent.Bytes
	if s.timed {
		doc.DurationMs = milliseconds(s.last)
	}
	keys := slices.SortedFunc(maps.Keys(s.methods), func(a, b methodKey) int {
		return cmp.Or(cmp.Compare(a.sender, b.sender), cmp.Compare(a.method, b.method), cmp.Compare(a.update, b.update))
	})
	for _, key := range keys {
		c := s.methods[key]
		m := c.MethodStats
		if n := len(c.delays); n > 0 {
			slices.Sort(c.delays)
			at := func(part float64) float64 { return *milliseconds(c.delays[min(n-1, int(part*float64(n)))]) }
			m.Delay = &DelayStats{at(0.50), at(0.95), at(0.99), at(1)}
		}
		doc.Methods = append(doc.Methods, m)
	}
	for _, c := range s.order {
		doc.Total.Messages += c.Messages
		doc.Total.Prompts += c.Prompts
		doc.Total.UsageReports += c.UsageReports
		doc.Total.Cost, doc.Total.Usage = sum(doc.Total.Cost, c.Cost), sum(doc.Total.Usage, c.Usage)
		out := *c
		if out.ContextUsed == nil {
			out.ContextSize = nil
		}
		doc.Sessions = append(doc.Sessions, out)
	}
	return doc
}

// sum adds numbers to others with the same names.
func sum(to, add map[string]float64) map[string]float64 {
	if to == nil {
		to = map[string]float64{}
	}
	for name, n := range add {
		to[name] += n
	}
	return to
}

// WriteJSON writes the statistics as one document.
func (s *Stats) WriteJSON(w io.Writer) error { return report.WriteJSON(w, s.Document()) }

// WriteText writes the statistics for people.
func (s *Stats) WriteText(w io.Writer) error {
	doc := s.Document()
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "messages: %d, %s", doc.Messages, size(doc.Bytes))
	if doc.DurationMs != nil {
		fmt.Fprintf(w, ", %s", s.last.Round(time.Millisecond))
	}
	fmt.Fprintf(w, "\n  client: %d, %s\n  agent: %d, %s\n\n", doc.Client.Messages, size(doc.Client.Bytes),
		doc.Agent.Messages, size(doc.Agent.Bytes))
	fmt.Fprintln(t, "from\tcount\tbytes\terrors\tp50\tp95\tp99\tmax\t  method")
	for _, m := range doc.Methods {
		name := m.Method
		if m.Update != "" {
			name += " " + m.Update
		}
		p50, p95, p99, most := "", "", "", ""
		if m.Delay != nil {
			p50, p95, p99, most = ms(m.Delay.P50), ms(m.Delay.P95), ms(m.Delay.P99), ms(m.Delay.Max)
		}
		failed := ""
		if m.Errors > 0 {
			failed = strconv.Itoa(m.Errors)
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t  %s\n",
			m.From, m.Count, size(m.Bytes+m.AnswerBytes), failed, p50, p95, p99, most, plain.Line(name))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i, session := range doc.Sessions {
		if i == 0 {
			fmt.Fprintln(w)
		}
		if i == maxSessions {
			fmt.Fprintf(w, "and %d more sessions; see --format json\n", len(doc.Sessions)-i)
			break
		}
		session.write(w)
	}
	if len(doc.Sessions) > 1 {
		doc.Total.write(w)
	}
	if s.skipped > 0 {
		fmt.Fprintf(w, "%d messages have a method or a session beyond the first %d, and are counted only in the totals\n",
			s.skipped, maxKeys)
	}
	return nil
}

// maxSessions is how many sessions are listed for people.
const maxSessions = 20

// write writes the statistics of a session, or of all of them, for people.
func (session *SessionStats) write(w io.Writer) {
	name := "all sessions"
	if session.ID != "" {
		name = "session " + plain.Line(session.ID)
	}
	fmt.Fprintf(w, "%s: messages: %d, prompts: %d", name, session.Messages, session.Prompts)
	if session.ContextUsed != nil {
		fmt.Fprintf(w, ", context: %.0f of %.0f tokens", *session.ContextUsed, *session.ContextSize)
	}
	for _, currency := range slices.Sorted(maps.Keys(session.Cost)) {
		fmt.Fprintf(w, ", cost: %.6g %s", session.Cost[currency], plain.Line(currency))
	}
	fmt.Fprintln(w)
	for _, name := range slices.Sorted(maps.Keys(session.Usage)) {
		fmt.Fprintf(w, "  %s %.0f\n", plain.Line(name), session.Usage[name])
	}
	if session.UsageReports > 0 {
		fmt.Fprintf(w, "  (summed over responses to prompts: %d)\n", session.UsageReports)
	}
}

// ms formats a delay in milliseconds.
func ms(n float64) string { return delay(time.Duration(n * float64(time.Millisecond))) }

// size formats a number of bytes for people.
func size(n int) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 10<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
