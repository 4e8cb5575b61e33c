package badlines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/acpgo/sdk/internal/ledger"
)

// An Answer is a response that the side under test sent.
type Answer struct {
	ID      json.RawMessage
	Result  json.RawMessage // nil if it is an error
	Code    int             // of the error
	Message string
	Data    json.RawMessage
}

// String shows the answer in short.
func (a *Answer) String() string {
	if a.Result != nil {
		return fmt.Sprintf("%.100s: result %.300s", a.ID, a.Result)
	}
	return fmt.Sprintf("%.100s: error %d %.300q %.300s", a.ID, a.Code, a.Message, a.Data)
}

// ReadAnswer reads a line that the side under test sent. It fails if that is not a well-formed message, and
// returns nil for a request or notification.
func ReadAnswer(line []byte) (*Answer, error) {
	var m struct {
		JSONRPC string           `json:"jsonrpc"`
		ID      *json.RawMessage `json:"id"`
		Method  *string          `json:"method"`
		Params  json.RawMessage  `json:"params"`
		Result  json.RawMessage  `json:"result"`
		Error   *struct {
			Code    *int            `json:"code"`
			Message *string         `json:"message"`
			Data    json.RawMessage `json:"data"`
		} `json:"error"`
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("%.300q was sent: %w", line, err)
	}
	bad := fmt.Errorf("%.300q was sent, which is not a message", line)
	if m.JSONRPC != "2.0" {
		return nil, bad
	}
	if m.Method != nil {
		if m.Result != nil || m.Error != nil {
			return nil, bad
		}
		return nil, nil
	}
	a := &Answer{ID: null, Result: m.Result}
	if m.ID != nil { // absent or null, which Decode cannot tell apart
		a.ID = *m.ID
	} else if !bytes.Contains(line, []byte(`"id":null`)) {
		return nil, bad
	}
	switch e := m.Error; {
	case (e == nil) == (m.Result == nil), m.Params != nil:
		return nil, bad
	case e != nil && (e.Code == nil || e.Message == nil):
		return nil, bad
	case e != nil:
		a.Code, a.Message, a.Data = *e.Code, *e.Message, e.Data
	}
	return a, nil
}

// internals has texts that no error may send to the peer.
var internals = []string{
	"goroutine", "runtime", "reflect", "panic", ".go", "0xc000", "acp.", "rpc.", "codec.", "wire.", "json: cannot", "interface", "nil pointer", "*",
	"Go struct", "/usr/", "/home/", "/tmp/",
}

// Leak returns a text of internals that the error contains, or "". Errors may repeat text that the peer itself sent.
func (a *Answer) Leak(sent []byte) string {
	if bytes.Contains(sent, []byte(`\u`)) {
		return "" // it may hold anything
	}
	told := a.Message + " " + string(a.Data)
	for _, s := range internals {
		if strings.Contains(told, s) && !bytes.Contains(sent, []byte(s)) {
			return s
		}
	}
	return ""
}

// A Ledger compares the lines that were sent to a side with its answers.
type Ledger struct {
	MaxDepth  int
	MaxLine   int
	SkipNoise bool
	// The ids from 1 to Calls may be those of calls of the side, which a line under one ends that is not a request: it
	// is answered if the call is over.
	Calls int

	requests ledger.Requests[struct{}] // by the key of their id
	loose    int                       // lines of which it is open whether and, if any is set, how they are answered
	any      bool
	begun    bool // a line was sent
}

// Sent records a line without its newline.
func (l *Ledger) Sent(line []byte) {
	if !l.begun {
		l.begun = true
		line = bytes.TrimPrefix(line, []byte("\ufeff")) // which is ignored before the first line
	}
	switch trimmed := bytes.Trim(line, " \t\r"); {
	case len(line) > l.MaxLine:
		l.loose++
		l.any = true
		return
	case len(trimmed) == 0, l.SkipNoise && line[0] != '{' && trimmed[0] != '{':
		return
	}
	switch m := Read(line, l.MaxDepth); {
	case m.Kind == Notification, m.Kind == Response:
	case m.Kind != Request && l.callOf(m.ID):
		l.loose++
		l.any = true
	case m.Silent, m.ID == nil, l.SkipNoise && m.Kind != Request && (m.Kind == Unread || line[0] != '{'):
		l.loose++
		l.any = l.any || m.ID == nil
	default:
		l.requests.Ask(Key(m.ID), struct{}{})
	}
}

// callOf reports whether an id may be that of a call by the side.
func (l *Ledger) callOf(id []byte) bool {
	n, err := strconv.ParseFloat(Key(id), 64) // some peers write a fraction or an exponent
	return err == nil && n > 0 && n <= float64(l.Calls) && n == math.Trunc(n)
}

// Answered records an answer of that side.
func (l *Ledger) Answered(a *Answer) { l.requests.Answer(Key(a.ID)) }

// Owed returns the number of answers that are due for the lines with an id, whether or not they have arrived.
func (l *Ledger) Owed(id string) int { return l.requests.Get(Key([]byte(id))).Asked }

// Check returns an error if an answer arrived that was not due. If all is set, it also returns one if an answer is
// missing.
func (l *Ledger) Check(all bool) error {
	for id, e := range l.requests.All() {
		switch {
		case all && e.Open() > 0:
			return fmt.Errorf("%d answers under the id %.100s, want %d", e.Answered, id, e.Asked)
		case e.Unasked > 0 && id != "null" && !l.any:
			return fmt.Errorf("%d answers under the id %.100s, want %d", e.Answered+e.Unasked, id, e.Asked)
		}
	}
	if n := l.requests.Unasked(); n > l.loose {
		return fmt.Errorf("%d answers too many", n-l.loose)
	}
	return nil
}
