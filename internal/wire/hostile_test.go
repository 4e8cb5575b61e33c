package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/badlines"
	"github.com/acpgo/sdk/internal/test/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tape is a Stream of given bytes, which keeps what is written.
type tape struct {
	in  *LineReader
	out bytes.Buffer
}

func (s *tape) Read() ([]byte, error) { return s.in.Next(nil) }

func (s *tape) Write(message []byte) error {
	s.out.Write(message)
	s.out.WriteByte('\n')
	return nil
}

func (s *tape) Close() error { return nil }

// echoer answers each request with its parameters, and keeps what it received.
type echoer struct {
	conn    *Conn
	methods []string // of requests and notifications
	params  []string
	invalid []error
	end     error
	drained int
}

func (h *echoer) HandleRequest(id ID, method string, params []byte) {
	var r Request
	h.conn.Accept(&r, id, method)
	defer r.Done()
	h.HandleNotification([]byte(method), params)
	if err := r.Answer(Answer{Result: rawValue(bytes.Clone(params))}); err != nil {
		h.invalid = append(h.invalid, err)
	}
}

func (h *echoer) HandleNotification(method, params []byte) {
	h.methods = append(h.methods, string(method))
	h.params = append(h.params, string(params))
}

func (h *echoer) TryRequest(id ID, method, rest []byte) bool {
	params, ok := h.try(method, rest)
	if ok {
		h.HandleRequest(id, string(method), params)
	}
	return ok
}

func (h *echoer) TryNotification(method, rest []byte) bool {
	params, ok := h.try(method, rest)
	if ok {
		h.HandleNotification(method, params)
	}
	return ok
}

// try knows one method only, as a table of methods does, whose names have no escapes.
func (h *echoer) try(method, rest []byte) (params []byte, ok bool) {
	if string(method) != "m" {
		return nil, false
	}
	d := codec.NewDecoder(nil)
	d.ResetLast(rest)
	d.Skip()
	params, ok = d.EndLast()
	return bytes.Trim(params, " \t\r"), ok
}

func (h *echoer) Flush()          {}
func (h *echoer) ReleaseMessage() {}

func (h *echoer) HandleEnd(err error) {
	if h.end = err; h.conn.Err() != err {
		h.invalid = append(h.invalid, fmt.Errorf("the end %w is not that of the connection", err))
	}
}

func (h *echoer) HandleDrained()                       { h.drained++ }
func (h *echoer) HandleInvalid(_ []byte, reason error) { h.invalid = append(h.invalid, reason) }

type rawValue json.RawMessage

func (v rawValue) EncodeJSON(e *codec.Encoder) {
	if len(v) == 0 {
		e.Null()
		return
	}
	e.Raw(json.RawMessage(v))
}

// run starts a connection whose handler is an echoer.
func run(s Stream, config Config) (*Conn, *echoer) {
	h := &echoer{}
	config.Handler = h
	h.conn = NewConn(s, config)
	h.conn.Run()
	return h.conn, h
}

// play runs a connection over input to its end.
func play(t testing.TB, input []byte, max int, noise bool) (*echoer, []*badlines.Answer) {
	t.Helper()
	// A byte order mark is ignored before the first line only.
	in := io.MultiReader(strings.NewReader("\n"), bytes.NewReader(input))
	stream := &tape{in: NewLineReader(in, max)}
	c, h := run(stream, Config{Drain: time.Minute, SkipNoise: noise})
	<-c.Done()
	must.Do(t, c.Close(context.Background()))
	if !errors.Is(h.end, io.EOF) || h.drained != 1 {
		t.Fatalf("the handler was told of the end %v, and %d times that it is over", h.end, h.drained)
	}
	var answers []*badlines.Answer
	for line := range bytes.Lines(stream.out.Bytes()) {
		a, err := badlines.ReadAnswer(line)
		if a == nil || err != nil {
			t.Fatalf("sent %s: %v", line, err)
		}
		answers = append(answers, a)
	}
	return h, answers
}

func TestHostileLines(t *testing.T) {
	lines := badlines.Lines("m", `"a":[1]`)
	for _, line := range lines {
		t.Run(line.Name, func(t *testing.T) {
			if max := codec.MaxDepth; line.ID != "" && strings.TrimSpace(line.Text) != "" {
				checkOracle(t, line, badlines.Read([]byte(line.Text), max))
			}
			h, answers := play(t, []byte(line.Text+"\n"+`{"jsonrpc":"2.0","id":"alive","method":"m"}`+"\n"), 4<<20, false)
			if n := len(h.methods); n == 0 || h.methods[n-1] != "m" {
				t.Fatalf("the request behind it was not handled: %q", h.methods)
			}
			if n := len(answers) - 1; n < 0 || string(answers[n].ID) != `"alive"` {
				t.Fatalf("the request behind it was not answered: %v", answers)
			} else {
				answers = answers[:n]
			}
			switch {
			case line.ID == "" && len(answers) > 0:
				t.Errorf("answered with %+v", answers)
			case line.ID == "":
			case len(answers) != 1:
				t.Errorf("%d answers", len(answers))
			default:
				checkAnswer(t, answers[0], line.ID, line.Code)
			}
		})
	}
	t.Logf("%d lines", len(lines))
}

// checkOracle holds the table against the oracle of the fuzz targets: neither is right if they differ.
func checkOracle(t *testing.T, line badlines.Line, m badlines.Message) {
	t.Helper()
	switch {
	case line.Code == 0 && m.Kind == badlines.Request && badlines.Key(m.ID) == badlines.Key(json.RawMessage(line.ID)):
	case line.Code != 0 && m.Codes != nil && m.Codes[0] == line.Code && (m.ID == nil || string(m.ID) == line.ID):
	default:
		t.Errorf("the oracle takes it for %+v", m)
	}
}

func checkAnswer(t *testing.T, got *badlines.Answer, id string, code int) {
	t.Helper()
	if badlines.Key(got.ID) != badlines.Key(json.RawMessage(id)) || got.Code != code {
		t.Errorf("got code %d and id %.100s, want %d and %.100s", got.Code, got.ID, code, id)
	}
}

// A response that arrives damaged is not answered, wherever it was cut or damaged behind the member that
// tells what it is.
func TestDamagedResponsesAreNotAnswered(t *testing.T) {
	n := 0
	for _, whole := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{"sessionId":"s","list":[1,2.5,true,null]}}`,
		`{"id":7,"error":{"code":-32603,"message":"no","data":["x"]},"jsonrpc":"2.0"}`,
		`{"result":{"a":"b"},"jsonrpc":"2.0","id":"seven"}`,
	} {
		told := strings.Index(whole, `":{`) + 2
		for i := told; i < len(whole); i++ {
			for _, line := range []string{whole[:i], whole[:i] + "\x00" + whole[i:], whole[:i] + "\xff" + whole[i:], whole[:i] + "}" + whole[i:]} {
				if _, answers := play(t, []byte(line+"\n"), 1<<20, false); len(answers) > 0 {
					t.Errorf("%s: answered with %+v", line, answers)
				}
				n++
			}
		}
	}
	t.Logf("%d damaged responses", n)
}

// What is refused for its length is answered under its id, and what follows is served.
func TestHostileLengths(t *testing.T) {
	const max = 1000
	pad := strings.Repeat("x", 20_000)
	for _, test := range []struct{ name, line, id string }{
		{"id first", `{"id":1,"method":"m","params":"` + pad + `"}`, "1"},
		{"id last", `{"method":"m","params":"` + pad + `","id":"last"}`, `"last"`},
		{"id in the middle", `{"method":"` + pad + `","id":1,"params":"` + pad + `"}`, "null"},
		{"id too long itself", `{"id":"` + pad + `","method":"m"}`, "null"},
		{"id in the parameters", `{"method":"m","params":{"x":"` + pad + `","id":1}}`, "null"},
		{"no JSON", pad, "null"},
		{"a response", `{"id":1,"result":"` + pad + `"}`, ""},
		{"a response with its id last", `{"result":"` + pad + `","id":1}`, ""},
		{"blank", strings.Repeat(" ", 20_000), "null"},
		{"just fitting", `{"jsonrpc":"2.0","id":1,"method":"m","params":"` + pad[:max-49] + `"}`, "1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, end := range []string{"\n", "\r\n"} {
				_, answers := play(t, []byte(test.line+end+`{"jsonrpc":"2.0","id":"alive","method":"m"}`), max, false)
				n := len(answers) - 1
				if n < 0 || string(answers[n].ID) != `"alive"` {
					t.Fatal("the request behind it was not answered")
				}
				code := badlines.InvalidRequest
				if len(test.line)+len(end) <= max+1 {
					code = 0
				}
				if test.id == "" {
					if n > 0 {
						t.Errorf("answered with %+v", answers[0])
					}
				} else if n != 1 {
					t.Errorf("%d answers", n)
				} else {
					checkAnswer(t, answers[0], test.id, code)
				}
			}
		})
	}
}
