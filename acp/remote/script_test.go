package remote_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
)

// The conversations in testdata are played against this package: those in server against a Server, whose client and
// whose agent the script plays, and those in client against Dial, whose server and whose program the script plays.
// testdata/README.md describes them.

// A line is one line of a script.
type line struct {
	text       string
	who        string        // the first word
	do         string        // the second one: -> or <- or a verb
	rest       string        // what follows
	name       string        // as NAME
	header     header        // in parentheses
	answer     *line         // behind =>
	first, end int           // of several messages
	at         time.Duration // how long it takes; negative if that is not said
}

// header is a list of names and values.
type header [][2]string

func (h header) get(name string) (value string, ok bool) {
	for _, pair := range h {
		if strings.EqualFold(pair[0], name) {
			return pair[1], true
		}
	}
	return "", false
}

// check returns the first header that has another value.
func (h header) check(got http.Header) (wrong string) {
	for _, pair := range h {
		if values := strings.Join(got.Values(pair[0]), ", "); values != pair[1] && pair[0] != "only" {
			return fmt.Sprintf("%s is %q, want %q", pair[0], values, pair[1])
		}
	}
	return ""
}

var (
	duration = regexp.MustCompile(` @(\S+)$`)
	several  = regexp.MustCompile(`^(\d+) times (.*)$`)
	repeated = regexp.MustCompile(` \*(?:(\d+)\.\.)?(\d+)$`)
	padding  = regexp.MustCompile(`x\{(\d+)\}`)
	named    = regexp.MustCompile(` as (\w+)$`)
	headed   = regexp.MustCompile(`^(.*?) ?\(([^()]*)\)(.*)$`)
	short    = regexp.MustCompile(`^([a-z_$][\w$/]*)?(?:#(\S+))?(?: (-\d+))?(?: (.*))?$`)
)

func parseLine(t *testing.T, text string) *line {
	l := &line{text: text, end: 1, at: -1}
	if m := duration.FindStringSubmatch(text); m != nil {
		d, err := time.ParseDuration(m[1])
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		l.at, text = d, strings.TrimSuffix(text, m[0])
	}
	if m := repeated.FindStringSubmatch(text); m != nil {
		l.first, _ = strconv.Atoi(m[1]) // they are digits, or nothing
		l.end, _ = strconv.Atoi(m[2])
		text = strings.TrimSuffix(text, m[0])
	}
	if before, after, ok := strings.Cut(text, "=> "); ok {
		l.answer = &line{rest: after}
		l.answer.takeHeader()
		text = strings.TrimSpace(before)
	}
	if m := named.FindStringSubmatch(text); m != nil {
		l.name, text = m[1], strings.TrimSuffix(text, m[0])
	}
	l.who, l.rest, _ = strings.Cut(text, " ")
	if isRequest[l.who] {
		l.takeHeader()
	} else {
		l.do, l.rest, _ = strings.Cut(l.rest, " ")
	}
	return l
}

// isRequest holds the first words of requests.
var isRequest = map[string]bool{
	"POST": true, "GET": true, "DELETE": true, "PUT": true, "OPTIONS": true, "upgrade": true, "open": true,
}

// takeHeader takes the header from the rest of a line.
func (l *line) takeHeader() {
	m := headed.FindStringSubmatch(l.rest)
	if m == nil {
		return
	}
	l.rest = strings.TrimSpace(m[1] + m[3])
	for pair := range strings.SplitSeq(m[2], " | ") {
		name, value, _ := strings.Cut(pair, ":")
		l.header = append(l.header, [2]string{name, strings.TrimSpace(value)})
	}
}

// pad replaces x{n} by n times x.
func pad(text string) string {
	return padding.ReplaceAllStringFunc(text, func(s string) string {
		n, _ := strconv.Atoi(s[2 : len(s)-1])
		return strings.Repeat("x", n)
	})
}

// expand returns a message for its short form.
func expand(form string) string { return pad(unpadded(form)) }

func unpadded(form string) string {
	if text, err := strconv.Unquote(form); err == nil {
		return text
	}
	m := short.FindStringSubmatch(form)
	if m == nil || m[1]+m[2] == "" {
		return form
	}
	text := `{"jsonrpc":"2.0"`
	if m[2] != "" {
		text += `,"id":` + m[2]
	}
	switch {
	case m[1] != "":
		text += `,"method":"` + m[1] + `"`
		if m[4] != "" {
			text += `,"params":` + m[4]
		}
	case m[3] != "":
		text += `,"error":{"code":` + m[3] + `,"message":"no"}`
	default:
		text += `,"result":` + m[4]
	}
	return text + "}"
}

// same reports whether a message is the one of a short form. Of an error it compares the id, the code and a part of the text.
func same(got, form string) bool {
	m := short.FindStringSubmatch(form)
	if strings.Contains(got, "secret") { // nobody may repeat it
		return false
	}
	if m == nil || m[1] != "" || m[2] == "" || m[3] == "" {
		return got == expand(form)
	}
	var e struct {
		ID    json.RawMessage
		Error struct {
			Code    json.RawMessage
			Message string
		}
	}
	return json.Unmarshal([]byte(got), &e) == nil && string(e.ID) == m[2] && string(e.Error.Code) == m[3] &&
		strings.Contains(e.Error.Message, m[4])
}

// number replaces %d in the n-th of several messages.
func number(form string, n int) string { return strings.ReplaceAll(form, "%d", strconv.Itoa(n)) }

// messages returns the messages of a line as they are on the wire.
func (l *line) messages() (texts []string) {
	for i := l.first; i < l.end; i++ {
		texts = append(texts, expand(number(l.rest, i)))
	}
	return texts
}

// write writes messages to a stream, several of them at once.
func write(stream rpc.Stream, texts []string) error {
	if len(texts) == 1 {
		return stream.Write([]byte(texts[0]))
	}
	return stream.(rpc.FastStream).WriteLines([]byte(strings.Join(texts, "\n") + "\n"))
}

// shorten makes a text fit for an error.
func shorten(text string) string {
	if len(text) > 500 {
		return fmt.Sprintf("%s… (%d bytes)", text[:500], len(text))
	}
	return text
}

// setOptions sets the fields of options; times are written as such. It returns what is no field.
func setOptions(t *testing.T, options any, text []byte) (others map[string]json.RawMessage) {
	if err := json.Unmarshal(text, &others); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	v := reflect.ValueOf(options).Elem()
	for name, value := range others {
		field := v.FieldByName(name)
		if !field.IsValid() || field.Kind() == reflect.Func {
			continue
		}
		delete(others, name)
		if field.Type() == reflect.TypeFor[time.Duration]() {
			d, err := time.ParseDuration(strings.Trim(string(value), `"`))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			field.SetInt(int64(d))
		} else if err := json.Unmarshal(value, field.Addr().Interface()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return others
}

// A player plays one conversation.
type player interface{ play(l *line) }

// playScripts plays the conversations of a folder, each in a bubble of synctest. The section options is for those behind it.
func playScripts(t *testing.T, folder string, start func(t *testing.T, protocol string, options []byte) (p player, end func())) {
	files, err := filepath.Glob("testdata/" + folder + "/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(t)
		options := []byte("{}")
		for _, section := range txtar.Parse(text).Files {
			if section.Name == "options" {
				options = section.Data
				continue
			}
			ways := protocols[:1]
			if strings.HasSuffix(section.Name, "by every HTTP") {
				ways = protocols
			}
			for _, protocol := range ways {
				t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+section.Name+"/"+protocol, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						p, end := start(t, protocol, options)
						defer end()
						playLines(t, p, string(section.Data))
					})
				})
			}
		}
	}
}

func playLines(t *testing.T, p player, text string) {
	var at string
	defer func() {
		if t.Failed() {
			t.Logf("in the line %s", shorten(at))
		}
	}()
	for at = range strings.SplitSeq(strings.ReplaceAll(text, "\n\t", " "), "\n") {
		if at = strings.TrimSpace(at); at == "" || at[0] == '/' {
			continue
		}
		text, times := at, 1
		if m := several.FindStringSubmatch(at); m != nil {
			times, _ = strconv.Atoi(m[1]) // they are digits
			text = m[2]
		}
		began := time.Now()
		var l *line
		for n := range times {
			if times > 1 {
				at = number(text, n)
			}
			if l = parseLine(t, at); l.who == "wait" {
				time.Sleep(must.Get(time.ParseDuration(l.do))(t))
			} else {
				p.play(l)
			}
		}
		if took := time.Since(began).Round(time.Second / 10); l.at >= 0 && took != l.at {
			t.Errorf("it took %v", took)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	at = "(the end)"
}

var sentinels = map[string]error{
	"EOF": io.EOF, "ErrClosed": rpc.ErrClosed, "ErrServerClosed": remote.ErrServerClosed, "ErrExpired": remote.ErrExpired,
	"ErrStalled": remote.ErrStalled, "ErrUnanswered": remote.ErrUnanswered, "ErrConnectionGone": remote.ErrConnectionGone,
	"ErrUnauthorized": remote.ErrUnauthorized, "ErrStreamTaken": remote.ErrStreamTaken, "ErrTooLarge": remote.ErrTooLarge,
	"ErrBusy": remote.ErrBusy,
}

var errorWord = regexp.MustCompile(`"[^"]*"|\S+`)

// checkError compares an error with words: names of errors that it must match, texts, and, behind !, what it must not.
func checkError(t *testing.T, err error, words string) {
	t.Helper()
	for _, word := range errorWord.FindAllString(words, -1) {
		name, not := strings.CutPrefix(word, "!")
		var is bool
		if want, ok := sentinels[name]; ok {
			is = errors.Is(err, want)
		} else if name == "OutcomeError" {
			_, is = errors.AsType[*remote.OutcomeError](err)
		} else if n, ok := strings.CutPrefix(name, "status="); ok {
			status, _ := errors.AsType[*remote.StatusError](err)
			is = status != nil && strconv.Itoa(status.Status) == n
		} else if d, ok := strings.CutPrefix(name, "after="); ok {
			status, _ := errors.AsType[*remote.StatusError](err)
			is = status != nil && status.RetryAfter.String() == d
		} else if n, ok := strings.CutPrefix(name, "code="); ok {
			closed, _ := errors.AsType[*remote.CloseError](err)
			is = closed != nil && strconv.Itoa(closed.Code) == n
		} else {
			is = err != nil && strings.Contains(err.Error(), strings.Trim(name, `"`))
		}
		if is == not {
			t.Errorf("the error is %v, want %s", err, word)
		}
	}
}
