package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/plain"
)

// Question is a permission request as a user decides it: what the tool call does, what each option means, and when one
// can be chosen. It trusts nothing that the agent says about itself, and its texts contain only what can be seen. A
// user interface draws Facts, Notes and Choices, reports with [Question.Shown] how much of them was visible, and passes
// what the user has chosen to [Question.Choose]. [Console.AskPermission] does this on a terminal that is used line by
// line. A Question is not safe for concurrent use.
type Question struct {
	// Title is a line above the facts, which the user interface may set.
	Title string
	// Call is the tool call as the agent asked about it.
	Call acp.ToolCall
	// Facts say what the tool call does: its kind, commands, paths and input. If the agent has changed the tool call since
	// it asked, the last ones say how; see [Question.Update].
	Facts []Fact
	// Notes are who asks and why, the title, warnings, and what is remembered.
	Notes []Fact
	// Choices are the options, in the order of the request.
	Choices []Choice

	now    func() (acp.ToolCall, bool)
	latest *acp.ToolCall
	asked  int                  // how many of the facts are those of the question
	found  []Fact               // what others found in it
	shown  [Whole + 1]time.Time // since when
}

// Fact is a line, or several, for the user: a name and a text.
type Fact struct {
	Name string
	// Text is a text to draw as it is. Only commands and input have several lines.
	Text string
	// Said says that it is in the agent's own words, so that it may be cut off if all of it is shown elsewhere.
	Said bool
}

// Choice is an option.
type Choice struct {
	Option acp.PermissionOption
	// Text is one line: what the option does, according to its kind; whether the name says otherwise; and the name.
	Text string
	// Contradicts says that the name or the id of the option is misleading, which Text says too.
	Contradicts bool

	ambiguous bool
}

// QuestionOptions is what a client knows about a question in addition to the tool call.
type QuestionOptions struct {
	// Agent asks, and Session is the session that it asks in; "" if that is obvious.
	Agent, Session string
	// Idle says that the agent asks although no turn is in progress; see [Snapshot.Idle].
	Idle bool
	// Reason says why the user is asked.
	Reason string
	// Found are commands and paths that the client found in the input. Those that are facts already are left out.
	Found []Fact
	// Notes follow the title and the reason: warnings, and what options of a kind remember.
	Notes []Fact
	// Latest returns what is known of the tool call now, if anything is; see [Question.Update]. It may be nil.
	Latest func() (acp.ToolCall, bool)
}

// NewQuestion returns the question about a tool call, of which the client passes all that it knows; see [Asking].
func NewQuestion(call *acp.ToolCall, options []acp.PermissionOption, o *QuestionOptions) *Question {
	o = cmp.Or(o, &QuestionOptions{})
	q := &Question{Call: *call, found: o.Found, now: o.Latest}
	q.latest = &q.Call
	q.Facts = q.facts(call)
	q.asked = len(q.Facts)
	note := func(name, text string, said bool) {
		if strings.TrimSpace(text) != "" {
			q.Notes = append(q.Notes, Fact{oneLine(name), oneLine(text), said})
		}
	}
	if o.Session != "" {
		note("agent", o.Agent+", in "+o.Session, true)
	} else {
		note("agent", o.Agent, true)
	}
	if o.Idle {
		note("turn", "none is in progress: this is not about your last prompt", false)
	}
	note("title", call.Title, true)
	note("reason", o.Reason, false)
	for _, n := range o.Notes {
		note(n.Name, n.Text, n.Said)
	}
	for _, option := range options {
		c := NewChoice(option)
		c.ambiguous = slices.ContainsFunc(options, func(other acp.PermissionOption) bool {
			return other.OptionID == option.OptionID && other.Kind != option.Kind
		})
		if c.ambiguous {
			c.Contradicts = true
			c.Text += " (cannot be chosen: an option of another kind has the same id)"
		}
		q.Choices = append(q.Choices, c)
	}
	return q
}

// Ask is [NewQuestion] for a request that has all that is known of the tool call; see [Asking].
func Ask(req *acp.RequestPermissionRequest, o *QuestionOptions) *Question {
	call := acp.ToolCall{ToolCallID: req.ToolCall.ToolCallID}
	call.Apply(req.ToolCall)
	return NewQuestion(&call, req.Options, o)
}

// facts says what a tool call does.
func (q *Question) facts(c *acp.ToolCall) []Fact {
	kind := oneLine(string(cmp.Or(c.Kind, acp.ToolKindOther)))
	if name := c.Name.Value(); name != "" {
		kind += ", tool " + oneLine(name)
	}
	facts := []Fact{{"kind", kind, true}}
	shown := map[string]bool{}
	add := func(name, text string) {
		if text != "" && !shown[text] {
			shown[text] = true
			facts = append(facts, Fact{Name: name, Text: text})
		}
	}
	commands, others := Commands(c.RawInput)
	for _, command := range commands {
		add("$", plain.Exact(command))
	}
	path := func(path, at string) {
		if !shown[oneLine(at)] {
			add("at", oneLine(at))
			shown[oneLine(path)] = true
		}
	}
	for _, at := range c.Locations {
		path(at.Path, Location(at))
	}
	for _, content := range c.Content {
		if diff, ok := content.Variant.(*acp.ToolCallContentDiff); ok && !shown[oneLine(diff.Path)] {
			path(diff.Path, diff.Path)
		}
	}
	for _, f := range q.found {
		if !slices.Contains(commands, f.Text) {
			add("names "+oneLine(f.Name), oneLine(f.Text))
		}
	}
	if len(commands) > 0 || c.Kind == acp.ToolKindExecute {
		for _, f := range others { // such as standard input, the directory and the environment
			facts = append(facts, Fact{strings.TrimSpace("input " + oneLine(f.Name)), plain.Exact(f.Text), false})
		}
	}
	return facts
}

// oneLine returns a text as one line without changing its meaning.
func oneLine(text string) string { return strings.ReplaceAll(plain.Exact(text), "\n", `\n`) }

// Location returns a location as it is written in messages: a path, and the line if it is known.
func Location(at acp.ToolCallLocation) string {
	if n, ok := at.Line.Get(); ok {
		return fmt.Sprintf("%s:%d", at.Path, n)
	}
	return at.Path
}

// Commands returns the commands in the input of a tool call, as far as they are given in one of the usual ways: as
// "command", "cmd" or "script", of text or of words, with "args". others is the rest of the input, which may change
// what they do: each member with its value, as text or as JSON. A member that occurs twice is there twice.
func Commands(input json.RawMessage) (commands []string, others []Fact) {
	type member struct {
		name  string
		value json.RawMessage
	}
	var members []member
	dec := json.NewDecoder(bytes.NewReader(input))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		members = []member{{"", input}}
	} else {
		for dec.More() {
			name, err := dec.Token()
			m := member{}
			m.name, _ = name.(string)
			if err == nil {
				err = dec.Decode(&m.value)
			}
			if err != nil {
				break // the connection checks that the whole message is valid
			}
			members = append(members, m)
		}
	}
	var args []string
	taken := func(name string) bool { return slices.Contains([]string{"command", "cmd", "script"}, name) }
	for _, m := range members {
		if m.name == "args" {
			if json.Unmarshal(m.value, &args) != nil {
				args = nil
			}
		}
	}
	for _, m := range members {
		var text string
		var words []string
		isText, isWords := json.Unmarshal(m.value, &text) == nil, json.Unmarshal(m.value, &words) == nil && words != nil
		switch {
		case taken(m.name) && isText && text != "":
			for _, a := range args {
				text += " " + Quote(a)
			}
			commands = append(commands, text)
		case taken(m.name) && isWords && len(words) > 0:
			commands = append(commands, Quote(words...))
		case isText && text != "" || len(m.value) == 0 || bytes.Equal(m.value, []byte("null")):
			if text != "" {
				others = append(others, Fact{Name: m.name, Text: text})
			}
		case m.name == "args" && isWords:
			others = append(others, Fact{Name: m.name, Text: Quote(words...)})
		default:
			others = append(others, Fact{Name: m.name, Text: compact(m.value)})
		}
	}
	if len(commands) > 0 && len(args) > 0 {
		others = slices.DeleteFunc(others, func(f Fact) bool { return f.Name == "args" && f.Text == Quote(args...) })
	}
	return commands, others
}

// compact returns JSON without spaces, and without escapes of what can be seen.
func compact(value json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return string(value)
	}
	return string(plain.JSON(b.Bytes()))
}

// Quote joins the words of a command, each quoted as a shell needs it, so that its beginning and end are visible.
func Quote(words ...string) string {
	return plain.Quote(words...)
}

// Subject says in one line what a tool call does, from what cannot be mistaken for something else, like the facts of a
// [Question]. The title comes last, in parentheses.
func Subject(c *acp.ToolCall) string {
	commands, _ := Commands(c.RawInput)
	words := []string{string(cmp.Or(c.Kind, acp.ToolKindOther))}
	for _, command := range commands {
		words = append(words, "$ "+command)
	}
	for _, at := range c.Locations {
		words = append(words, Location(at))
	}
	for _, content := range c.Content {
		if diff, ok := content.Variant.(*acp.ToolCallContentDiff); ok && len(c.Locations) == 0 {
			words = append(words, diff.Path)
		}
	}
	if title := strings.TrimSpace(c.Title); title != "" && !slices.Contains(commands, title) {
		words = append(words, fmt.Sprintf("(%s)", title))
	}
	return strings.Join(words, " ")
}

// Update asks what is known of the tool call now, and reports whether this has changed. The facts of the question stay,
// because the answer is about them; the new ones follow, and have to be shown before an option can be chosen.
func (q *Question) Update() bool {
	if q.now == nil {
		return false
	}
	call, ok := q.now()
	if !ok {
		return false
	}
	before := q.latest
	q.latest = &call
	if before.Kind == call.Kind && before.Name == call.Name && bytes.Equal(before.RawInput, call.RawInput) &&
		slices.Equal(paths(before), paths(&call)) {
		return false
	}
	known := map[Fact]bool{}
	for _, f := range q.Facts[:q.asked] {
		known[f] = true
	}
	var later []Fact
	for _, f := range q.facts(&call) {
		if !known[f] {
			later = append(later, Fact{"later " + f.Name, f.Text, f.Said})
		}
	}
	if len(later) > 0 {
		later = slices.Insert(later, 0,
			Fact{Name: "changed", Text: "since it asked, the agent has changed this; your answer is about what is above"})
	}
	if slices.Equal(later, q.Facts[q.asked:]) {
		return false
	}
	q.Facts = append(slices.Clip(q.Facts[:q.asked]), later...)
	q.shown = [Whole + 1]time.Time{}
	return true
}

// paths returns the places that a tool call names.
func paths(c *acp.ToolCall) []string {
	var all []string
	for _, at := range c.Locations {
		all = append(all, Location(at))
	}
	for _, content := range c.Content {
		if diff, ok := content.Variant.(*acp.ToolCallContentDiff); ok {
			all = append(all, diff.Path)
		}
	}
	return all
}

// Extent is how much of a question was visible.
type Extent int

// The extents. Each includes those before it.
const (
	Begun    Extent = iota // something of it
	AllFacts               // Facts
	Whole                  // Facts and Notes
)

// Delay is how long a question must have been visible before what the user types or clicks allows something, so that it
// was not meant for something else.
const Delay = 600 * time.Millisecond

// The errors of [Question.Choose].
var (
	ErrUnseen     = errors.New("the whole command and all paths have to be visible first")
	ErrUnseenNote = errors.New("what is remembered has to be visible first")
	ErrTooEarly   = errors.New("that was typed before the question could be read")
	ErrNoChoice   = errors.New("this option cannot be chosen")
)

// Shown says that so much of the question has been visible until now, as it is drawn now: if it is drawn anew, for
// another width, that may be less than before.
func (q *Question) Shown(extent Extent, now time.Time) {
	for e := range q.shown {
		switch {
		case Extent(e) > extent:
			q.shown[e] = time.Time{}
		case q.shown[e].IsZero():
			q.shown[e] = now
		}
	}
}

// Choose returns the option with an index, which the user has chosen at a time: that of the key, of the click, or of
// the first character of the line. The error is [ErrUnseen], [ErrUnseenNote] or [ErrTooEarly] if it cannot be chosen
// yet, and [ErrNoChoice] if it cannot be chosen at all. Rejecting once needs only that something of the question was
// visible.
func (q *Question) Choose(i int, at time.Time) (*acp.PermissionOption, error) {
	if i < 0 || i >= len(q.Choices) || q.Choices[i].ambiguous {
		return nil, ErrNoChoice
	}
	option := &q.Choices[i].Option
	extent, delay, unseen := Whole, Delay, ErrUnseenNote
	switch option.Kind {
	case acp.PermissionOptionKindRejectOnce:
		extent, delay = Begun, 0
	case acp.PermissionOptionKindAllowOnce:
		extent = AllFacts
	}
	switch {
	case q.shown[min(extent, AllFacts)].IsZero():
		return nil, ErrUnseen
	case q.shown[extent].IsZero():
		return nil, unseen
	case at.Before(q.shown[Begun].Add(delay)):
		return nil, ErrTooEarly
	}
	return option, nil
}

// maxName is how many characters of the name of an option are shown.
const maxName = 100

// NewChoice describes an option.
func NewChoice(o acp.PermissionOption) Choice {
	name := cmp.Or(strings.TrimSpace(o.Name), strings.TrimSpace(string(o.OptionID)))
	kind := strings.ReplaceAll(string(o.Kind), "_", " ")
	if !o.Kind.Known() {
		kind = plain.Exact(fmt.Sprintf("kind %q, which may allow anything", clip(string(o.Kind))))
	}
	c := Choice{Option: o, Contradicts: contradicts(o)}
	if c.Contradicts {
		kind += " (its name says otherwise)"
	}
	c.Text = kind + ": " + clip(oneLine(name))
	return c
}

func clip(text string) string {
	if r := []rune(text); len(r) > maxName {
		return string(r[:maxName-1]) + "…"
	}
	return text
}

// The words by which the names of options are understood.
var (
	allowWords = []string{"yes", "allow", "accept", "approve", "approved", "permit", "grant", "ok", "okay", "proceed",
		"continue", "run", "confirm", "trust"}
	rejectWords = []string{"no", "not", "never", "don't", "deny", "reject", "refuse", "decline", "disallow", "forbid",
		"block", "cancel", "abort", "stop", "skip"}
	alwaysWords = []string{"always", "never", "forever", "session", "permanently"}
	onceWords   = []string{"once"}
	// Phrases that mean "always" but contain a word of rejection.
	noQuestions = strings.NewReplacer("don't ask", "always", "do not ask", "always", "never ask", "always", "stop asking",
		"always", "this time", "once")
)

// contradicts reports whether the name of an option contradicts its kind.
func contradicts(o acp.PermissionOption) bool {
	name := noQuestions.Replace(strings.ToLower(strings.ReplaceAll(o.Name, "’", "'")))
	words := strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' })
	has := func(some []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(some, w) })
	}
	allows, rejects := has(allowWords), has(rejectWords)
	// such as "Yes, and skip the tests": the first word decides; in "Always reject" it is the other one
	if allows && rejects {
		allows = slices.Contains(allowWords, words[0])
		rejects = !allows
	}
	always, once := has(alwaysWords), has(onceWords)
	switch o.Kind {
	case acp.PermissionOptionKindAllowOnce:
		return rejects || always && !once
	case acp.PermissionOptionKindAllowAlways:
		return rejects || once && !always
	case acp.PermissionOptionKindRejectOnce:
		return allows || always && !once
	case acp.PermissionOptionKindRejectAlways:
		return allows || once && !always
	}
	return false
}
