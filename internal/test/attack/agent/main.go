// Command agent is a hostile agent. It opens sessions like any agent; in the first turn it carries out the attack that
// -case names, and then it plays ordinary turns.
//
//	agent -case NAME [-full] [-report FILE] [-secret FILE]
//	agent -list
//
// It writes the faults of the client that it finds to the report. The driver, package attack, judges the client.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/internal/test/attack/hostile"
)

// An attack is what the agent does in the turn "attack", in the session that the client has opened.
type attack struct {
	run func(a *agent, s *session) error
	// initialize, newSession, and ordinary, if set, stand for the ordinary answers.
	initialize func(a *agent, m *hostile.Message) error
	newSession func(a *agent, m *hostile.Message, id string) error
	ordinary   func(a *agent, s *session) error
	prompted   func(a *agent) // called by the goroutine that reads, when the turn "attack" begins
	fatal      bool           // the connection is not expected to live
	v2         bool           // turns end as in version 2
}

// attacks are all attacks.
func attacks() map[string]attack {
	all := map[string]attack{"none": {run: func(*agent, *session) error { return nil }}}
	for _, group := range []map[string]attack{floods(), lines(), files(), terminals(), texts(), ends(), version2()} {
		maps.Copy(all, group)
	}
	return all
}

// A session is one that the client has opened.
type session struct{ id, cwd string }

type agent struct {
	*hostile.Conn
	*hostile.Report
	attack attack
	full   bool
	secret string // a file outside the directories of the session
	text   string // what is in it

	reading atomic.Pointer[func(*hostile.Message)] // gets requests other than those of a session's life
	tasks   sync.WaitGroup

	mu       sync.Mutex
	sessions map[string]*session
	prompt   json.RawMessage // the id of the last one
}

func main() {
	a := &agent{sessions: map[string]*session{}}
	flag.BoolVar(&a.full, "full", false, "attack in full")
	flag.StringVar(&a.secret, "secret", "", "a file that must not be read or changed through the client")
	a.attack, a.Report = hostile.Flags(attacks())
	if a.secret != "" {
		text, err := os.ReadFile(a.secret)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		a.text = string(text)
	}
	a.Conn = hostile.New(os.Stdout)
	err := a.Run(os.Stdin, a.serve)
	a.tasks.Wait()
	if err != nil && !a.attack.fatal {
		a.Problem("reading: %v", err)
		if err := a.Write(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

// size is how much of an attack is made.
func (a *agent) size(small, full int) int {
	if a.full {
		return full
	}
	return small
}

// params are the members of parameters that the agent looks at.
type params struct {
	SessionID string `json:"sessionId"`
	Cwd       string `json:"cwd"`
	Prompt    []struct {
		Text string `json:"text"`
	} `json:"prompt"`
}

// serve handles what the client sends.
func (a *agent) serve(m *hostile.Message) {
	var p params
	if len(m.Params) > 0 {
		if err := json.Unmarshal(m.Params, &p); err != nil {
			a.Problem("wrong parameters of %s: %v", m.Method, err)
		}
	}
	var err error
	switch m.Method {
	case "initialize":
		if a.attack.initialize != nil {
			err = a.attack.initialize(a, m)
			break
		}
		err = a.Result(m.ID, `{"protocolVersion":1}`)
	case "session/new":
		a.mu.Lock()
		s := &session{fmt.Sprint("s-", len(a.sessions)+1), p.Cwd}
		a.sessions[s.id] = s
		a.mu.Unlock()
		if a.attack.newSession != nil {
			err = a.attack.newSession(a, m, s.id)
			break
		}
		err = a.Result(m.ID, `{"sessionId":`+hostile.Quote(s.id)+`}`)
	case "session/prompt":
		a.mu.Lock()
		s := a.sessions[p.SessionID]
		a.mu.Unlock()
		if s == nil || len(p.Prompt) == 0 {
			err = a.Refuse(m.ID, -32602, "no such session, or no prompt")
			break
		}
		a.mu.Lock()
		a.prompt = m.ID
		a.mu.Unlock()
		a.tasks.Go(func() { a.turn(m, s, p.Prompt[0].Text) })
		if a.attack.prompted != nil {
			a.attack.prompted(a)
		}
		return
	case "": // an answer that nobody waits for
	default:
		if read := a.reading.Load(); read != nil {
			(*read)(m)
		} else if len(m.ID) > 0 {
			err = a.Refuse(m.ID, -32601, "Method not found")
		}
	}
	if err != nil && !a.attack.fatal {
		a.Problem("answering %s: %v", m.Method, err)
	}
}

// errGone ends a turn that is not answered.
var errGone = errors.New("the connection was broken on purpose")

// turn serves a prompt.
func (a *agent) turn(m *hostile.Message, s *session, text string) {
	run := a.ordinary
	switch {
	case text == "attack":
		run = func(s *session) error {
			defer func() { a.reading.Store(nil) }()
			return a.attack.run(a, s)
		}
	case text == "create" && a.attack.ordinary == nil:
		run = a.create
	case text == "own":
		run = a.own
	case a.attack.ordinary != nil:
		run = func(s *session) error { return a.attack.ordinary(a, s) }
	}
	err := run(s)
	if errors.Is(err, errGone) || a.attack.fatal && err != nil {
		err = nil
	} else if err != nil {
		a.Problem("in the turn %q: %v", text, err)
	}
	if err := a.Ran(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if a.attack.fatal {
		return
	}
	if a.attack.v2 {
		err = a.endV2(m, s)
	} else {
		err = a.Result(m.ID, `{"stopReason":"end_turn"}`)
	}
	if err != nil {
		a.Problem("answering the prompt %q: %v", text, err)
		if err := a.Write(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

// ordinary is a turn without anything hostile. It finds that the client serves as it should.
func (a *agent) ordinary(s *session) error {
	if err := a.update(s, chunk("still here")); err != nil {
		return err
	}
	path := filepath.Join(s.cwd, "ordinary.txt")
	if err := os.WriteFile(path, []byte("ordinary\n"), 0o600); err != nil {
		return err
	}
	m, err := a.Call("fs/read_text_file", object("sessionId", s.id, "path", path), hostile.Patience)
	if err != nil {
		return err
	}
	if m.Error != nil && m.Error.Code != -32601 {
		return fmt.Errorf("an ordinary file cannot be read: %s", m)
	}
	if m.Error == nil && string(m.Result) != `{"content":"ordinary\n"}` {
		return fmt.Errorf("reading an ordinary file gives a %s", m)
	}
	m, err = a.Call("session/request_permission", a.permission(s, "An ordinary question", ""), hostile.Patience)
	if err != nil {
		return err
	}
	a.granted(m)
	return nil
}

// permission is a request for permission with some text as its content.
func (a *agent) permission(s *session, title, content string) string {
	return `{"sessionId":` + hostile.Quote(s.id) + `,"toolCall":{"toolCallId":"call","title":` + hostile.Quote(title) +
		`,"content":[{"type":"content","content":{"type":"text","text":` + hostile.Quote(content) + `}}]},` +
		`"options":[{"optionId":"allow","name":"Allow","kind":"allow_once"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]}`
}

// granted notes that nobody may have granted a request.
func (a *agent) granted(m *hostile.Message) {
	var r struct {
		Outcome struct {
			OptionID string `json:"optionId"`
		} `json:"outcome"`
	}
	if m.Error == nil && json.Unmarshal(m.Result, &r) == nil && r.Outcome.OptionID == "allow" {
		a.Problem("a permission was granted that no user has granted")
	}
}

// create starts commands and does not wait for them: its turn ends while they start. Of the sessions of all runs, one
// has this directory and this id, which are an argument of its commands.
func (a *agent) create(s *session) error {
	for range 8 {
		_, _, err := a.Go("terminal/create", `{"sessionId":`+hostile.Quote(s.id)+
			`,"command":"sh","args":["-c","sleep 1000; :",`+hostile.Quote(s.cwd+" "+s.id)+`]}`)
		if err != nil {
			return err
		}
	}
	return a.Ran()
}

// update sends an update.
func (a *agent) update(s *session, update string) error {
	return a.Notify("session/update", `{"sessionId":`+hostile.Quote(s.id)+`,"update":`+update+`}`)
}

// chunk is an update with a piece of the agent's message.
func chunk(text string) string {
	return `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + hostile.Quote(text) + `}}`
}

// object is a JSON object with members that are strings or ints.
func object(members ...any) string {
	var b strings.Builder
	for i := 0; i < len(members); i += 2 {
		b.WriteString([]string{",", "{"}[btoi(i == 0)])
		b.WriteString(hostile.Quote(members[i].(string)) + ":")
		switch v := members[i+1].(type) {
		case string:
			b.WriteString(hostile.Quote(v))
		case int:
			b.WriteString(strconv.Itoa(v))
		}
	}
	return b.String() + "}"
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// flood sends n requests at once and returns the answers.
func (a *agent) flood(n int, method string, params func(i int) string) (answers []<-chan *hostile.Message, err error) {
	for i := range n {
		_, answer, err := a.Go(method, params(i))
		if err != nil {
			return answers, err
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// collect waits for all answers, of which some may be errors but at least one must not.
func (a *agent) collect(answers []<-chan *hostile.Message, limit time.Duration) error {
	fine, refused := 0, map[string]int{}
	err := hostile.AwaitAll(answers, limit, func(m *hostile.Message) {
		if m.Error == nil {
			fine++
		} else {
			refused[fmt.Sprintf("%d %.60s", m.Error.Code, m.Error.Message)]++
		}
	})
	if err != nil {
		return err
	}
	if fine == 0 {
		return fmt.Errorf("all %d requests were refused: %v", len(answers), refused)
	}
	a.Note("%d of %d answered", fine, len(answers))
	for why, n := range refused {
		a.Note("%d refused: %s", n, why)
	}
	return nil
}
