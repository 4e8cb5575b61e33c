package conduct_test

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/acpgo/sdk/acp/conduct"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
)

// TestScripts plays the client and the components of chains. A section is a chain with as many proxies as it says, and
// without an agent or with a trace if it says so. A line is one of
//
//	client -> MESSAGE      an end sends a line: client, p0, p1 …, or agent
//	agent <- MESSAGE       an end gets exactly this line, or any line if none is given
//	agent <~ TEXT          an end gets a line that contains a text
//	init RESULT            initialize passes through the chain
//	started 2              so many components were started
//	wait 9s                time passes
//	client ends            the client ends its input
//	over ERROR             the client gets no more, and the chain ends, with this error if one is given
//	log TEXT, trace LINE   what the log contains, and the next line of the trace, without its time; no other may be left
//
// In a message, i{5} stands for iiiii, and nested{5} for five arrays in each other; a quoted text is that of a Go string.
// @10s at the end of a line says how long it takes.
func TestScripts(t *testing.T) {
	archive := must.Get(os.ReadFile("testdata/chains.txtar"))(t)
	for _, section := range txtar.Parse(archive).Files {
		title, form, _ := strings.Cut(section.Name, ": ")
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var trace strings.Builder
				o := &conduct.Options{InitTime: 10 * time.Second}
				if strings.Contains(form, "trace") {
					o.Trace = &trace
				}
				proxies := must.Get(strconv.Atoi(form[:1]))(t)
				s := &script{t: t, trace: &trace, chain: start(t, proxies, !strings.Contains(form, "no agent"), o)}
				for text := range strings.Lines(string(section.Data)) {
					if text = strings.TrimSpace(text); text != "" && text[0] != '/' {
						s.play(text)
					}
				}
				if len(s.lines) > 0 {
					t.Errorf("the trace also has %q", s.lines)
				}
			})
		})
	}
}

type script struct {
	t     *testing.T
	chain *chain
	trace *strings.Builder
	lines []string // of the trace, after the end
}

var (
	timed   = regexp.MustCompile(` @(\w+)$`)
	padding = regexp.MustCompile(`(i|nested)\{(\d+)\}`)
)

// message returns a message as it is on the wire.
func (s *script) message(text string) string {
	if raw, err := strconv.Unquote(text); err == nil {
		return raw
	}
	return padding.ReplaceAllStringFunc(text, func(pad string) string {
		m := padding.FindStringSubmatch(pad)
		n, _ := strconv.Atoi(m[2]) // they are digits
		if m[1] == "i" {
			return strings.Repeat("i", n)
		}
		return strings.Repeat("[", n) + strings.Repeat("]", n)
	})
}

func (s *script) play(text string) {
	began := time.Now()
	took := timed.FindStringSubmatch(text)
	if took != nil {
		text = strings.TrimSuffix(text, took[0])
		defer func() {
			if d := time.Since(began).String(); d != took[1] {
				s.t.Fatalf("%s took %s", text, d)
			}
		}()
	}
	c := s.chain
	who, rest, _ := strings.Cut(text, " ")
	switch who {
	case "init":
		if rest == "" {
			rest = answer1
		}
		c.initialize(rest)
	case "wait":
		d, err := time.ParseDuration(rest)
		if err != nil {
			s.t.Fatal(err)
		}
		time.Sleep(d)
	case "started":
		if n := strconv.Itoa(int(c.started.Load())); n != rest {
			s.t.Errorf("%s components were started", n)
		}
	case "log":
		synctest.Wait()
		contains(s.t, c.log.String(), rest)
	case "over":
		if line, err := c.client.Read(); err == nil {
			s.t.Errorf("the client also got %s", line)
		}
		err := c.result()
		if component, ok := errors.AsType[*conduct.ComponentError](err); (rest != "") != ok || ok && component.Error() != rest {
			s.t.Errorf("the chain ended with %v, want %s", err, rest)
		}
		if s.trace.Len() > 0 {
			s.lines = strings.Split(strings.TrimSuffix(s.trace.String(), "\n"), "\n")
			s.checkTimes()
		}
	case "trace":
		if len(s.lines) == 0 || withoutTime(s.lines[0]) != rest {
			s.t.Fatalf("the trace continues with %q, want %s", s.lines, rest)
		}
		s.lines = s.lines[1:]
	default:
		s.playEnd(who, rest)
	}
}

func (s *script) playEnd(who, rest string) {
	c := s.chain
	ends := map[string]*end{"client": c.client, "agent": c.components[len(c.components)-1], "p0": c.components[0]}
	if len(c.components) > 1 {
		ends["p1"] = c.components[1]
	}
	e := ends[who]
	do, text, _ := strings.Cut(rest, " ")
	switch {
	case e == nil:
		s.t.Fatalf("no end is called %s", who)
	case do == "->":
		e.send(s.message(text))
	case do == "<-" && text == "":
		e.next()
	case do == "<-":
		e.want(s.message(text))
	case do == "<~":
		contains(s.t, e.next(), text)
	case do == "ends":
		if err := e.Stream.(rpc.HalfCloser).CloseWrite(); err != nil {
			s.t.Fatal(err)
		}
	default:
		s.t.Fatalf("an end cannot %s", do)
	}
}

// checkTimes requires that the times of a trace do not decrease.
func (s *script) checkTimes() {
	before := 0.0
	for _, line := range s.lines {
		var event struct{ TS *float64 }
		if err := json.Unmarshal([]byte(line), &event); err != nil || event.TS == nil || *event.TS < before {
			s.t.Fatalf("%v, %s", err, line)
		}
		before = *event.TS
	}
}
