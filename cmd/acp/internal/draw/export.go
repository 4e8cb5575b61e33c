package draw

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	textpkg "github.com/yuin/goldmark/text"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/plain"
)

// ExportOptions configure [Export].
type ExportOptions struct {
	// Title is the heading; by default the session's title.
	Title string
	// Facts are lines below the heading, such as the agent's name and the directory.
	Facts []string
	// Terminal returns the output of a terminal.
	Terminal func(acp.TerminalID) (Output, bool)
}

// Export writes a whole conversation as Markdown. No text is left out. Messages are written unchanged, except that what
// they leave open is closed; everything else is within fences that are longer than any in it. Of images, audio and
// files only the type and the size are written. Control characters are written as package plain does, so that the file
// can safely be shown in a terminal.
func Export(w io.Writer, s *view.Snapshot, o *ExportOptions) error {
	if o == nil {
		o = &ExportOptions{}
	}
	e := &exporter{w: bufio.NewWriter(w), o: o}
	e.heading("#", cmp.Or(o.Title, s.Title.Value(), "Session"))
	e.facts(o.Facts)
	if n := s.First(); n > 0 {
		e.note("%d older items are not stored", n)
	}
	last := map[int]int{}
	for item := range s.Items() {
		last[item.Turn] = max(last[item.Turn], item.Index)
	}
	for item := range s.Items() {
		e.item(item)
		if turn := s.Turn(item.Turn); turn != nil && last[item.Turn] == item.Index {
			e.turn(turn)
		}
	}
	if plan, ok := s.Plan.Get(); ok && len(plan.Entries) > 0 {
		e.plan("Plan", plan.Entries)
	}
	for _, plan := range s.Plans {
		name := "Plan " + string(plan.ID)
		switch c := plan.Content.Variant.(type) {
		case *acp.PlanUpdateContentItems:
			e.plan(name, c.Entries)
		case *acp.PlanUpdateContentFile:
			e.heading("##", name)
			e.facts([]string{c.URI})
		case *acp.PlanUpdateContentMarkdown:
			e.heading("##", name)
			e.markdown(c.Content)
		default:
			e.heading("##", name)
			e.unknownContent(plan.Content)
		}
	}
	if u, ok := s.Usage.Get(); ok {
		e.note("%s", Usage(Plain(), u))
	}
	return e.w.Flush()
}

// exporter writes Markdown. Its writer keeps the first error until Flush.
type exporter struct {
	w *bufio.Writer
	o *ExportOptions
}

func (e *exporter) printf(format string, args ...any) { fmt.Fprintf(e.w, format, args...) }
func (e *exporter) blank()                            { e.w.WriteByte('\n') }
func (e *exporter) heading(level, text string)        { e.printf("%s %s\n\n", level, inline(text)) }
func (e *exporter) bullet(text string)                { e.printf("- %s\n", inline(text)) }

// facts writes a list unless it is empty.
func (e *exporter) facts(facts []string) {
	for _, fact := range facts {
		e.bullet(fact)
	}
	if len(facts) > 0 {
		e.blank()
	}
}

// note writes a remark of this program. The arguments must not contain text of an agent.
func (e *exporter) note(format string, args ...any) { e.printf("*("+format+")*\n\n", args...) }

// inline returns a text of an agent for a line of Markdown, with all markup escaped.
func inline(text string) string {
	text = strings.Join(strings.Fields(plain.Text(text)), " ")
	return escapes.Replace(text)
}

var escapes = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, "&", `\&`, "#", `\#`, "~", `\~`)

// fenced writes a text that must not be interpreted.
func (e *exporter) fenced(info, text string) {
	text = plain.Text(text)
	fence := longer(text, "`")
	e.printf("%s%s\n%s", fence, info, text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		e.blank()
	}
	e.printf("%s\n\n", fence)
}

// json writes JSON with a name before it.
func (e *exporter) json(name string, raw []byte) {
	var b bytes.Buffer
	if json.Indent(&b, plain.JSON(raw), "", "  ") != nil {
		b.Reset()
		b.Write(raw)
	}
	e.printf("%s:\n\n", name)
	e.fenced("json", b.String())
}

// markdown writes Markdown of an agent, and closes what it leaves open.
func (e *exporter) markdown(text string) {
	text = strings.TrimRight(plain.Screen(text), "\n")
	e.printf("%s\n", text)
	if closing := closingOf(text); closing != "" {
		e.printf("%s\n", closing)
	}
	e.blank()
}

// closingOf returns what ends the code block or HTML block that a Markdown text leaves open: the first candidate after
// which a heading is recognized.
func closingOf(text string) string {
	candidates := append([]string{"", longer(text, "`"), longer(text, "~")}, htmlEnds...)
	for _, closing := range candidates {
		source := []byte(text + "\n" + closing + "\n\n# probe\n")
		doc := commonMark.Parse(textpkg.NewReader(source))
		if h, ok := doc.LastChild().(*ast.Heading); ok && h.Lines().Len() == 1 && string(h.Lines().Value(source)) == "probe" {
			return closing
		}
	}
	return ""
}

var commonMark = goldmark.DefaultParser()

// htmlEnds end the HTML blocks that an empty line does not end.
var htmlEnds = []string{"-->", "]]>", "?>", "</script>", "</pre>", "</style>", "</textarea>", ">"}

// longer returns a fence of the given character that is longer than any in a text.
func longer(text, char string) string {
	longest, run := 2, 0
	for i := range len(text) {
		if text[i] != char[0] {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return strings.Repeat(char, longest+1)
}

func (e *exporter) item(item *view.Item) {
	switch v := item.Variant.(type) {
	case *view.Message:
		e.message(v)
	case *view.ToolCall:
		e.toolCall(v)
	case *view.Compaction:
		e.note("compaction of the context: %s", inline(string(v.Status)))
		if text := v.Error.Value(); text != "" {
			e.fenced("", text)
		}
		e.content(v.Summary)
	case *view.Subagent:
		e.heading("###", "Subagent "+cmp.Or(v.Title.Value(), string(v.SessionID)))
		e.facts([]string{"session " + string(v.SessionID), "in " + v.Cwd.Value()})
		if d := v.Description.Value(); d != "" {
			e.fenced("", d)
		}
	case *view.SessionMessage:
		e.heading("###", fmt.Sprintf("Message from %s to %s", v.Sender.Value(), v.Recipient.Value()))
		e.content(v.Content)
	case *view.Notice:
		e.printf("> **%s** %s\n\n", inline(string(v.Severity)), inline(v.Title))
		if d := v.Description.Value(); d != "" {
			e.fenced("", d)
		}
	case *view.Unknown:
		e.heading("###", "Unknown update "+v.Tag)
		e.json("As received", v.Raw)
	}
}

func (e *exporter) message(m *view.Message) {
	switch m.Role {
	case view.User:
		e.heading("##", "User")
	case view.Agent:
		e.heading("##", "Agent")
	default:
		e.heading("###", "Thought")
	}
	e.content(m.Content)
}

func (e *exporter) content(c view.Content) {
	for b := range c.Blocks() {
		e.block(b)
	}
	if c.Dropped > 0 {
		e.note("%d more bytes are not stored", c.Dropped)
	}
}

func (e *exporter) block(b acp.ContentBlock) {
	media := func(kind, mime, data string) {
		e.printf("*(%s, %s, %s)*\n\n", kind, inline(mime), size(decoded(data)))
	}
	switch v := b.Variant.(type) {
	case *acp.ContentBlockText:
		e.markdown(v.Text)
	case *acp.ContentBlockImage:
		media("image", v.MimeType, v.Data)
	case *acp.ContentBlockAudio:
		media("audio", v.MimeType, v.Data)
	case *acp.ContentBlockResource:
		switch r := v.Resource.Variant.(type) {
		case *acp.TextResourceContents:
			e.printf("%s:\n\n", inline(r.URI))
			e.fenced("", r.Text)
		case *acp.BlobResourceContents:
			e.printf("%s:\n\n", inline(r.URI))
			media("file", r.MimeType.Value(), r.Blob)
		default:
			e.unknownContent(v.Resource)
		}
	case *acp.ContentBlockResourceLink:
		e.printf("[%s](<%s>)\n\n", inline(cmp.Or(v.Title.Value(), v.Name)), address(v.URI))
		if d := v.Description.Value(); d != "" {
			e.fenced("", d)
		}
	default:
		e.unknownContent(b)
	}
}

// unknownContent writes content of a kind that this program has no case for, as JSON.
func (e *exporter) unknownContent(content json.Marshaler) {
	if raw, err := content.MarshalJSON(); err == nil {
		e.json("Unknown content "+inline(typeIn(raw)), raw)
	}
}

// address returns a text of an agent as the target of a link.
func address(text string) string {
	return strings.NewReplacer("<", "%3C", ">", "%3E", " ", "%20", "\n", "", "\\", "%5C").Replace(plain.Text(text))
}

func (e *exporter) toolCall(c *view.ToolCall) {
	mark, _, word := newPainter(NoColor()).state(c)
	title := fmt.Sprintf("%s %s: %s", mark, cmp.Or(c.Call.Kind, acp.ToolKindOther), toolTitle(&c.Call))
	if word != "" {
		title += " (" + word + ")"
	}
	e.heading("###", title)
	if strings.Contains(strings.TrimSpace(c.Call.Title), "\n") || len(c.Call.Title) > maxLabel {
		e.fenced("", c.Call.Title)
	}
	var facts []string
	if name := c.Call.Name.Value(); name != "" {
		facts = append(facts, "tool "+name)
	}
	for _, at := range c.Call.Locations {
		facts = append(facts, "at "+view.Location(at))
	}
	if p := c.Permission; p != nil {
		facts = append(facts, newPainter(NoColor()).permissionText(p))
	}
	e.facts(facts)
	if len(c.Call.RawInput) > 0 {
		e.json("Input", c.Call.RawInput)
	}
	for _, content := range c.Call.Content {
		switch v := content.Variant.(type) {
		case *acp.ToolCallContentContent:
			if text, ok := v.Content.Variant.(*acp.ContentBlockText); ok {
				e.fenced("", text.Text)
			} else {
				e.block(v.Content)
			}
		case *acp.ToolCallContentDiff:
			e.diff((*acp.Diff)(v))
		case *acp.ToolCallContentTerminal:
			e.terminal(v.TerminalID)
		default:
			e.unknownContent(content)
		}
	}
	if len(c.Call.RawOutput) > 0 {
		e.json("Output", c.Call.RawOutput)
	}
}

func (e *exporter) terminal(id acp.TerminalID) {
	if e.o.Terminal == nil {
		e.facts([]string{"terminal " + string(id)})
		return
	}
	out, ok := e.o.Terminal(id)
	if !ok {
		e.note("the output of the terminal is not known")
		return
	}
	lines, dropped := terminalLines(out.Text)
	if out.Truncated || dropped > 0 {
		e.note("the beginning of the output is omitted")
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text() + "\n")
	}
	e.fenced("console", b.String())
	if out.Status != "" {
		e.facts([]string{out.Status})
	}
}

// diff writes a diff in the format that programs read.
func (e *exporter) diff(d *acp.Diff) {
	old, exists := d.OldText.Get()
	from, to := "a/"+strings.TrimPrefix(d.Path, "/"), "b/"+strings.TrimPrefix(d.Path, "/")
	if !exists {
		from = "/dev/null"
	}
	if len(old)+len(d.NewText) <= maxDiffBytes {
		e.fenced("diff", udiff.Unified(label(from), label(to), old, d.NewText))
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", label(from), label(to))
	for _, side := range [][2]string{{"-", old}, {"+", d.NewText}} {
		for l := range strings.Lines(side[1]) {
			b.WriteString(side[0] + l)
			if !strings.HasSuffix(l, "\n") {
				b.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
	e.fenced("diff", b.String())
}

func (e *exporter) turn(turn *view.TurnState) {
	p := newPainter(NoColor())
	for _, l := range p.turnEnd(turn) {
		e.printf("*%s*\n\n", inline(l.text()))
	}
}

func (e *exporter) plan(name string, entries []acp.PlanEntry) {
	e.heading("##", name)
	for _, entry := range entries {
		mark := " "
		if entry.Status == acp.PlanEntryStatusCompleted {
			mark = "x"
		}
		e.printf("- [%s] %s", mark, inline(entry.Content))
		if entry.Status == acp.PlanEntryStatusInProgress {
			e.printf(" (in progress)")
		}
		e.blank()
	}
	e.blank()
}
