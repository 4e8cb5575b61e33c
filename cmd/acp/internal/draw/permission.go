package draw

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

// Permission is a permission request.
type Permission struct {
	// Call is everything that is known of the tool call, which may be more than the request contains; see view.Asking.
	Call acp.ToolCall
	// About is what the rules found in the tool call; see policy.Decision.
	About []string
	// Agent asks, and Session is the session that it asks in, if there are several.
	Agent, Session string
	// Reason says why the user is asked, in words of the agent or a rule.
	Reason string
	// Always says what "always" options remember, and where.
	Always []Always
	// Warnings say what the user's own rules allow that the user may not expect.
	Warnings []string
}

// Always says what an option of a kind remembers.
type Always struct {
	Kind acp.PermissionOptionKind
	Text string
}

// PermissionText is a permission request as lines.
type PermissionText struct {
	// Head are the facts, each after its name: first the kind, the command and the paths, in that order. No line of it
	// begins with the agent's own words.
	Head []string
	// Facts is how many lines of Head contain the kind, the command and the paths.
	Facts int
	// Body is what the agent says about it, after a bar: the content, the input, and what was cut off in Head.
	Body []string
}

// Lines returns all lines for a terminal that is used line by line, with the facts close to what follows.
func (t *PermissionText) Lines() []string {
	if len(t.Body) == 0 {
		return t.Head
	}
	lines := slices.Concat(t.Head, []string{""}, t.Body, []string{""})
	if len(t.Body) > 10 {
		lines = append(lines, t.Head[:t.Facts]...)
	}
	return lines
}

// Draw draws everything that is known. There may be many lines; see [Pager].
func (r *Permission) Draw(t *Theme, layout DiffLayout, terminal func(acp.TerminalID) (Output, bool), width int) PermissionText {
	p := newPainter(t)
	p.diffs = layout
	if terminal != nil {
		p.terminal = func(id string) (Output, bool) { return terminal(acp.TerminalID(id)) }
	}
	var head, body []line
	said := func(name string, lines []line) {
		if len(body) > 0 {
			body = append(body, nil)
		}
		if name != "" {
			body = append(body, line{{name, p.dim}})
		}
		bar := line{{p.marks.vertical + " ", p.dim}}
		for _, l := range lines {
			body = append(body, wrapBehind(bar, bar, l, width)...)
		}
	}
	var cut []func() // draws in the body what was cut off in the head
	// The agent's names for things are shown on one line each, however long they are.
	called := func(name, value string) {
		if strings.TrimSpace(value) == "" {
			return
		}
		l := line{{name + " ", p.dim}, {label(value), p.text}}
		head = append(head, l.clip(width, p.marks.ellipsis))
		if l.width() > width || len(value) > maxLabel || strings.Contains(strings.TrimSpace(value), "\n") {
			cut = append(cut, func() { said("The whole "+name, paragraph(value, p.text)) })
		}
	}
	fact := func(name, value string, s style) {
		head = append(head, line{{name + " ", p.dim}, {value, s}}.wrap(width, line{{"  ", style{}}})...)
	}

	c := &r.Call
	kind := string(c.Kind)
	if kind == "" {
		kind = string(acp.ToolKindOther)
	}
	if name := c.Name.Value(); name != "" {
		kind += ", tool " + name
	}
	called("kind", kind)
	shown := map[string]bool{}
	if cmd := command(c.RawInput); cmd != "" {
		shown[cmd] = true
		for i, l := range linesOf(clean(cmd)) {
			prompt := line{{"$ ", p.warn}}
			if i > 0 {
				prompt = line{{"  ", p.warn}}
			}
			head = append(head, wrapBehind(prompt, line{{"  ", p.warn}}, line{{l, p.strong}}, width)...)
		}
	}
	path := func(path, at string) {
		if !shown[at] {
			shown[path], shown[at] = true, true
			fact("at", visibly(at), p.text)
		}
	}
	for _, at := range c.Locations {
		path(at.Path, location(at))
	}
	for _, content := range c.Content {
		if diff, ok := content.Variant.(*acp.ToolCallContentDiff); ok && !shown[diff.Path] {
			path(diff.Path, diff.Path)
		}
	}
	for _, about := range r.About {
		name, rest, _ := strings.Cut(about, " ")
		prefix, err := strconv.QuotedPrefix(rest)
		text, _ := strconv.Unquote(prefix) // "" on error
		var words []string
		if name == "line" && json.Unmarshal([]byte(text), &words) == nil { // the rules give a command in words as JSON
			text = quoted(words)
		}
		if err == nil && (name == "path" || name == "line") && !shown[text] {
			fact("names", visibly(about), p.text)
		}
	}
	facts := len(p.strings(head, width))

	who := r.Agent
	if r.Session != "" {
		who += ", in " + r.Session
	}
	called("agent", who)
	called("title", c.Title)
	for i, l := range paragraph(r.Reason, p.text) {
		name := "reason"
		if i > 0 {
			name = "      "
		}
		fact(name, l.text(), p.text)
	}
	for _, warning := range r.Warnings {
		fact("warning", label(warning), p.warn)
	}
	for _, always := range r.Always {
		fact(kindWords(always.Kind), visibly(always.Text), p.text)
	}

	for _, content := range c.Content {
		said("", p.toolContent(content, maxDiffAll, max(width-2, 1)))
	}
	if len(c.RawInput) > 0 {
		if len(body) > 0 {
			body = append(body, nil)
		}
		body = append(body, p.json("Input", c.RawInput, width)...)
	}
	for _, draw := range cut {
		draw()
	}
	return PermissionText{p.strings(head, width), facts, p.strings(body, width)}
}

// visibly returns a text as one line without changing its meaning: line breaks are shown as \n.
func visibly(text string) string { return strings.ReplaceAll(clean(text), "\n", `\n`) }

// kindWords returns the kind of an option in words.
func kindWords(kind acp.PermissionOptionKind) string {
	words := label(string(kind))
	if !kind.Known() {
		return fmt.Sprintf("kind %q", words)
	}
	return strings.ReplaceAll(words, "_", " ")
}

// maxOptionName is the maximum width of an option's name.
const maxOptionName = 100

// OptionText returns an option as one line: first what it does, according to its kind, then its name. contradicts
// reports whether the name contradicts the kind, which the text then says.
func OptionText(o acp.PermissionOption) (text string, contradicts bool) {
	name := label(o.Name)
	if strings.TrimSpace(name) == "" {
		name = label(string(o.OptionID))
	}
	text = line{{kindWords(o.Kind), style{}}}.clip(maxOptionName, "…").text()
	if contradicts = contradiction(o); contradicts {
		text += " (its name says otherwise)"
	}
	return text + ": " + line{{name, style{}}}.clip(maxOptionName, "…").text(), contradicts
}

// The words by which the names of options are understood.
var (
	allowWords  = []string{"yes", "allow", "accept", "approve", "approved", "permit", "grant", "ok", "okay", "proceed", "continue", "run", "confirm", "trust"}
	rejectWords = []string{"no", "not", "never", "don't", "deny", "reject", "refuse", "decline", "disallow", "forbid", "block", "cancel", "abort", "stop", "skip"}
	alwaysWords = []string{"always", "never", "forever", "session", "permanently"}
	onceWords   = []string{"once"}
	// Phrases that mean "always" but contain a word of rejection.
	noQuestions = strings.NewReplacer("don't ask", "always", "do not ask", "always", "never ask", "always", "stop asking", "always", "this time", "once")
)

// contradiction reports whether the name of an option contradicts its kind.
func contradiction(o acp.PermissionOption) bool {
	name := noQuestions.Replace(strings.ToLower(strings.ReplaceAll(o.Name, "’", "'")))
	words := strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' })
	has := func(some []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(some, w) })
	}
	allows, rejects := has(allowWords), has(rejectWords)
	if allows && rejects { // such as "Yes, and skip the tests": the first word decides; in "Always reject" it is the other one
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

// Subject says in one line what a tool call does, using what cannot be mistaken for something else: its kind, and the
// command or the paths. The title comes last, and is shown alone if there is nothing else.
func Subject(c *acp.ToolCall) string {
	words := []string{string(c.Kind)}
	if c.Kind == "" {
		words[0] = string(acp.ToolKindOther)
	}
	cmd := command(c.RawInput)
	if cmd != "" {
		words = append(words, "$ "+cmd)
	}
	for _, at := range c.Locations {
		words = append(words, location(at))
	}
	for _, content := range c.Content {
		if diff, ok := content.Variant.(*acp.ToolCallContentDiff); ok && len(c.Locations) == 0 {
			words = append(words, diff.Path)
		}
	}
	if title := strings.TrimSpace(c.Title); title != "" && title != cmd {
		words = append(words, fmt.Sprintf("(%s)", title))
	}
	return strings.Join(words, " ")
}

// Pager shows lines in less room than they need.
type Pager struct {
	lines []string
	top   int
}

// SetLines replaces the lines and keeps the position.
func (g *Pager) SetLines(lines []string) { g.lines = slices.Clone(lines) }

// Len returns the number of lines.
func (g *Pager) Len() int { return len(g.lines) }

// Scroll moves down by n lines, or up if n is less than 0.
func (g *Pager) Scroll(n, height int) {
	g.top = min(max(g.top+n, 0), max(len(g.lines)-height, 0))
}

// Top goes to the beginning.
func (g *Pager) Top() { g.top = 0 }

// Bottom goes to the end.
func (g *Pager) Bottom(height int) { g.top = max(len(g.lines)-height, 0) }

// View returns exactly height lines, and how many lines are above and below them.
func (g *Pager) View(height int) (lines []string, above, below int) {
	height = max(height, 0)
	g.Scroll(0, height)
	lines = append(lines, g.lines[g.top:min(g.top+height, len(g.lines))]...)
	below = len(g.lines) - g.top - len(lines)
	for len(lines) < height {
		lines = append(lines, "")
	}
	return lines, g.top, below
}

// Where describes the visible lines, such as "lines 1-20 of 83"; "" if all are visible.
func (g *Pager) Where(height int) string {
	if len(g.lines) <= height {
		return ""
	}
	return fmt.Sprintf("lines %d-%d of %d", g.top+1, min(g.top+height, len(g.lines)), len(g.lines))
}

// ToolCall returns the lines of a tool call: one line, or everything it contains if unfolded is set.
func ToolCall(t *Theme, c *view.ToolCall, unfolded bool, terminal func(acp.TerminalID) (Output, bool), width int) []string {
	p := newPainter(t)
	if terminal != nil {
		p.terminal = func(id string) (Output, bool) { return terminal(acp.TerminalID(id)) }
	}
	var out []line
	for _, part := range toolParts(c, unfolded) {
		out = append(out, part.draw(p, width)...)
	}
	return p.strings(out, width)
}
