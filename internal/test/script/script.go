// Package script plays what requirements demand on the wire against an agent or a client made with this module. The
// conversations are data: each file testdata/requirements/IDS.txtar has the ids of the requirements that it shows in its
// name, says how in its comment, and has one section for each connection:
//
//	agent [NAME]    the agent is tested, and its client is played
//	client [NAME]   the client is tested, and its agent is played
//
// A section begins with what the tested side is:
//
//	METHOD            its author handles the method: what the author does is in the conversation
//	METHOD RESULT     its author answers each such request with this result
//	options {…}       the Go options, as JSON
//	experimental      all experimental features are enabled
//	logs              its warnings are told to its author
//	peer {…}          what the other side can do: its capabilities; or, if it is the agent, its answer to initialize
//	accept ID REASON  the tested side breaks this rule on purpose
//	each <X> VALUE    the section is played with each of these values in place of <X>
//
// The conversation follows. Its single arrows are messages between the client (left) and the agent (right), in the short
// form of package shortform. Its double arrows are what the author of the tested side and this module say to each other:
//
//	=> session/new#a {"cwd":"/x"}     the author calls a method
//	=> in $p session/update#a {…}     with the context of a request that it handles, or
//	=> after $p session/update#a {…}  when that request has been answered
//	=> $/cancel_request {"requestId":"a"}  and gives its call up
//	<= #a {"sessionId":"s"}           the call returns
//	<= #a -32602 {"pointer":"/cwd"}   or fails, with this code and data; what is not sent fails so too
//	<= #a unsupported                 or with an error that has a name and no code
//	<= session/prompt#$p {…}          the handler of a method is called
//	<= $/cancel_request#$p            its context has ended
//	=> #$p {"stopReason":"end_turn"}  it returns a result,
//	=> #$p -32002 "data"              an error of the protocol,
//	=> #$p failure                    or another one: failure, cancelled (its context's), auth_required, panic,
//	=> #$p that_of 1                  or that which its call 1 has returned
//	<= warning {…}                    a warning, with its attributes; of input that is invalid or repaired too
//
//	<= #connect version               the client cannot be connected, and the conversation ends
//
// Three words stand for lines: "prompt TEXT…" for a prompt with the id p in the session s, "said TEXT" for a text of the
// agent in it, and "ended REASON" for the answer to the prompt.
//
// The tested side is initialized before a conversation that does not initialize it itself. In the end it must still
// answer, and must have said nothing that the conversation does not have.
package script

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/transcript"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/shortform"
)

// Run plays the files of a folder.
func Run(t *testing.T, folder string) {
	files, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive := must.Get(txtar.ParseFile(file))(t)
			for _, section := range archive.Files {
				t.Run(section.Name, func(t *testing.T) {
					sides := map[string]conformance.Side{"agent": conformance.Agent, "client": conformance.Client}
					word, _, _ := strings.Cut(section.Name, " ")
					side, ok := sides[word]
					if !ok {
						t.Fatalf("the section %s is unknown", section.Name)
					}
					Play(t, side, string(section.Data))
				})
			}
		})
	}
}

// setting is the beginning of a section.
type setting struct {
	side         conformance.Side
	handlers     map[string]string // methods, and the results of those that are always the same
	options      string
	experimental bool
	logs         bool
	peer         string
	accept       map[string]string
	each         map[string][]string
}

// head is a line of the beginning of a section.
var head = regexp.MustCompile(`^([a-z_$][\w$/.]*)(?: (.*))?$`)

// Play plays a section.
func Play(t *testing.T, side conformance.Side, text string) {
	t.Helper()
	s := setting{side: side, handlers: map[string]string{}, options: "{}", accept: map[string]string{}, each: map[string][]string{}}
	if side == conformance.Agent {
		s.handlers = map[string]string{"session/new": `{"sessionId":"s"}`, "session/prompt": `{"stopReason":"end_turn"}`}
	}
	var talk strings.Builder
	for line := range strings.Lines(text) {
		m := head.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		switch {
		case talk.Len() == 0 && strings.HasPrefix(line, "#"):
		case m == nil || talk.Len() > 0 || words[m[1]] != nil:
			talk.WriteString(line)
		case m[1] == "options":
			s.options = m[2]
		case m[1] == "experimental":
			s.experimental = true
		case m[1] == "logs":
			s.logs = true
		case m[1] == "peer":
			s.peer = m[2]
		case m[1] == "accept":
			id, reason, _ := strings.Cut(m[2], " ")
			s.accept[id] = reason
		case m[1] == "each":
			name, value, _ := strings.Cut(m[2], " ")
			s.each[name] = append(s.each[name], value)
		default:
			s.handlers[m[1]] = m[2]
		}
	}
	s.playEach(t, talk.String())
}

// words stand for lines.
var words = map[string]func(side conformance.Side, rest string) string{
	"prompt": func(side conformance.Side, rest string) string {
		var blocks []string
		for text := range strings.FieldsSeq(rest) {
			blocks = append(blocks, `{"type":"text","text":`+text+`}`)
		}
		params := ` {"sessionId":"s","prompt":[` + strings.Join(blocks, ",") + `]}`
		if side == conformance.Client {
			return `=> session/prompt#"p"` + params + "\n-> session/prompt#$p" + params
		}
		return `-> session/prompt#"p"` + params
	},
	"said": func(_ conformance.Side, rest string) string {
		return `<- session/update {"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk",` +
			`"content":{"type":"text","text":` + rest + `}}}`
	},
	"ended": func(side conformance.Side, rest string) string {
		result := ` {"stopReason":"` + rest + `"}`
		if side == conformance.Client {
			return "<- #$p" + result + "\n<= #\"p\"" + result
		}
		return `<- #"p"` + result
	},
}

// playEach plays a conversation once for each value of its places.
func (s setting) playEach(t *testing.T, talk string) {
	t.Helper()
	if len(s.each) == 0 {
		s.play(t, talk)
		return
	}
	name := slices.Sorted(maps.Keys(s.each))[0]
	values := s.each[name]
	s.each = maps.Clone(s.each)
	delete(s.each, name)
	for _, value := range values {
		with := s
		replace := func(text string) string { return strings.ReplaceAll(text, name, value) }
		with.peer, with.options, with.handlers = replace(s.peer), replace(s.options), map[string]string{}
		for method, result := range s.handlers {
			with.handlers[method] = replace(result)
		}
		t.Run(value, func(t *testing.T) { with.playEach(t, replace(talk)) })
	}
}

// hello initializes an agent, and is how a client initializes.
func (s setting) hello() string {
	if s.side == conformance.Agent {
		if s.peer == "" {
			s.peer = "{}"
		}
		return `-> initialize#"hello" {"protocolVersion":1,"clientCapabilities":` + s.peer + `}
<- #"hello" {"protocolVersion":1,"...":""}
`
	}
	if s.peer == "" {
		s.peer = `{"protocolVersion":1}`
	}
	return `-> initialize#$hello {"protocolVersion":1,"...":""}
<- #$hello ` + s.peer + "\n"
}

func (s setting) play(t *testing.T, talk string) {
	t.Helper()
	if !strings.Contains(talk, "initialize#") {
		talk = s.hello() + talk
	}
	toward, away := "->", "<-" // what the played side writes, and what it reads
	if s.side == conformance.Client {
		toward, away = away, toward
		if !strings.Contains(talk, "#connect ") && !strings.Contains(talk, `"id":"connect"`) {
			talk += "\n=> _alive#\"alive\"\n-> _alive#$alive\n<- #$alive {}\n<= #\"alive\" {}\n"
		}
	} else {
		talk += "\n-> _alive#\"alive\"\n<- #\"alive\" -32601 {\"method\":\"_alive\"}\n"
	}
	var whole, lines strings.Builder
	for line := range strings.Lines(strings.NewReplacer("\n\t", " ", "\n  ", " ").Replace(talk)) {
		line = strings.TrimSpace(line)
		if word, rest, _ := strings.Cut(line, " "); words[word] != nil {
			line = words[word](s.side, rest)
		}
		whole.WriteString(line + "\n")
	}
	for line := range strings.Lines(whole.String()) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "=>"); ok {
			line = toward + authored(rest)
		} else if rest, ok := strings.CutPrefix(line, "<="); ok {
			line = away + authored(rest)
		}
		if rest, ok := strings.CutPrefix(line, toward+" "); ok { // what is written has a message
			line = toward + " " + strings.NewReplacer(`"$any","...":""`, `"?"`, `"$any"`, `"?"`).Replace(strings.TrimSpace(shortform.Message(" "+rest)))
		}
		lines.WriteString(line + "\n")
	}
	ours, theirs := acp.Pipe()
	const unmade = "a conversation begins with what it is about, in a session that nobody has made"
	tap := &conformance.TapOptions{
		Ignore: func(f conformance.Finding) bool { return f.Side != s.side },
		Accept: map[string]string{"PRM-1": unmade, "ADD-2": unmade},
	}
	maps.Copy(tap.Accept, s.accept)
	if s.experimental {
		tap.Schema = conformance.V1Unstable()
	}
	a := newAuthor(t, theirs)
	go func() {
		defer close(a.over)
		s.serve(a, conformance.Tap(t, s.side, ours, tap))
	}()
	played := conformance.Client
	if s.side == conformance.Client {
		played = conformance.Agent
	}
	transcript.Run(t, shortform.Expand(t, lines.String()), played, a)
	<-a.over
	a.calls.Wait()
}

// namedError is an error with a name and without a code.
var namedError = regexp.MustCompile(`^ #(\S+) ([a-z_]+(?: [1-9])?)$`)

// within is a call with the context of a request, or after that was answered.
var within = regexp.MustCompile(`^ (in|after) (\S+)(.*)$`)

// authored returns what follows the arrow of a line between author and module, as what follows that of a message:
// one with the member "author".
func authored(rest string) string {
	extra := `"author":""`
	if m := within.FindStringSubmatch(rest); m != nil {
		extra, rest = `"author":"`+m[1]+`","of":"`+m[2]+`"`, m[3]
	}
	mark, _, _ := strings.Cut(rest, " ")
	rest = rest[len(mark):]
	if m := namedError.FindStringSubmatch(rest); m != nil && m[2] != "null" {
		rest = " #" + m[1] + ` 0 "` + m[2] + `"`
	}
	return mark + " {" + extra + "," + strings.TrimSpace(shortform.Message(rest))[1:]
}
