// What the model says: the prompts that it understands, and the steps that it takes for each.

package modelstub

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// script is what the model does after a prompt.
type script struct {
	name    string
	pattern *regexp.Regexp
	// play returns what the model says in a step, which is the number of results of tools since the prompt.
	play func(g *game) *reply
}

// scripts are tried in this order.
var scripts = []script{
	{"plan", regexp.MustCompile(`(?i)\bmake a plan\b`), playPlan},
	{"long", regexp.MustCompile(`(?i)\blong story\b`), playLong},
	{"think", regexp.MustCompile(`(?i)\bthink step by step\b`), playThink},
	{"refusal", regexp.MustCompile(`(?i)\brefuse to answer\b`), playRefusal},
	{"form", regexp.MustCompile(`(?i)\bask me for my name\b`), playForm},
	{"mode", regexp.MustCompile(`(?i)\bswitch your mode\b`), playMode},
	{"tool", regexp.MustCompile(`(?i)\bcall the MCP tool (\w+) with "([^"]*)"`), playTool},
	{"mcp", regexp.MustCompile(`(?i)\btools of the MCP servers\b`), playMCP},
	{"edit", regexp.MustCompile(`(?i)\bedit the file (\S+).*?\bappend the line "([^"]*)"`), playEdit},
	{"delete", regexp.MustCompile(`(?i)\bdelete the file (\S+)`), playDelete},
	{"read", readPattern, playRead},
	{"run", regexp.MustCompile("(?i)\\brun the command `([^`]+)`"), playRun},
}

var readPattern = regexp.MustCompile(`(?i)\bread the file (\S+)`)

// game is a script that is played for one request.
type game struct {
	*conversation
	match   []string // of the script's pattern
	prompt  string
	results []string // of tools, since the prompt
	dir     string   // the agent's working directory, "" if it did not say
}

// reminder is what agents put into the user's messages themselves.
var reminder = regexp.MustCompile(`(?s)<(system-reminder|session_context|environment_context|context)>.*?</(system-reminder|session_context|environment_context|context)>`)

// newest is the newest prompt of the user, and how many results of tools have come since.
func (c *conversation) newest() (prompt string, step int) {
	for i := len(c.turns) - 1; i >= 0; i-- {
		t := c.turns[i]
		if t.agent {
			continue
		}
		text := strings.TrimSpace(reminder.ReplaceAllString(strings.Join(t.texts, "\n"), ""))
		if text == "" || len(t.results) > 0 && find(text) == nil { // what comes with results is the agent's own
			step += len(t.results)
			continue
		}
		return text, step + len(t.results)
	}
	return "", step
}

// results are those of the tools since the newest prompt.
func (c *conversation) results() []string {
	_, step := c.newest()
	var all []string
	for _, t := range c.turns {
		all = append(all, t.results...)
	}
	return all[len(all)-step:]
}

// hasCalled reports whether the model has called a tool since the newest prompt.
func (g *game) hasCalled(name string) bool {
	step := len(g.results)
	for _, t := range slices.Backward(g.turns) {
		if step <= 0 && !t.agent {
			return false
		}
		if slices.Contains(t.calls, name) {
			return true
		}
		step -= len(t.results)
	}
	return false
}

// find is the script of a prompt; nil if it has none.
func find(prompt string) *script {
	for i := range scripts {
		if scripts[i].pattern.MatchString(prompt) {
			return &scripts[i]
		}
	}
	return nil
}

// aside is a request that an agent makes for itself, beside the user's turns.
var aside = regexp.MustCompile(`(?i)\b(title|summari[sz]e|summary|topic)\b`)

// decide is what the model says.
func (s *Server) decide(c *conversation) *reply {
	if c.schema != nil {
		value, err := json.Marshal(instance(c.schema, 0))
		if err == nil {
			return say(string(value))
		}
	}
	prompt, _ := c.newest()
	if len(c.tools) == 0 && aside.MatchString(c.system+" "+prompt) {
		return say("A conversation with the probe")
	}
	x := find(prompt)
	if x == nil {
		return say("OK")
	}
	g := &game{conversation: c, prompt: prompt, match: x.pattern.FindStringSubmatch(prompt), results: c.results(),
		dir: c.directory(s.options.Root)}
	r := x.play(g)
	for i := range r.calls {
		r.calls[i].id = s.id("call_acp")
	}
	return r
}

// directoryPattern is how agents tell the model where they are: what follows up to the end of the line begins with a
// path.
var directoryPattern = regexp.MustCompile(`(?i)(?:working directory|current directory|<cwd>|\bcwd\b|working in the (?:following )?director(?:y|ies))[^/\n]{0,40}\n?[^/\n]{0,10}(/[^\n]+)`)

// directory is the working directory of the agent, as it tells the model; "" if it does not.
func (c *conversation) directory(root string) string {
	texts := []string{c.system}
	for _, t := range c.turns {
		texts = append(texts, t.texts...)
	}
	all := strings.Join(texts, "\n")
	told := directoryPattern.FindAllStringSubmatch(all, -1)
	if root != "" {
		root = strings.TrimSuffix(root, "/") + "/"
		for _, m := range told {
			if strings.HasPrefix(m[1], root) {
				return pathIn(m[1])
			}
		}
		if i := strings.Index(all, root); i >= 0 {
			line, _, _ := strings.Cut(all[i:], "\n")
			return pathIn(line)
		}
	}
	if len(told) > 0 {
		return pathIn(told[0][1])
	}
	return ""
}

// pathEnd is where a path may end in a text.
var pathEnd = regexp.MustCompile(`[\s"'` + "`" + `<>\\,;]|[.:)\]]+(\s|$)|$`)

// pathIn is the path of a folder at the beginning of a line: names of folders may hold anything, so it is the longest
// one that there is, and up to the first character that is rare in paths if there is none.
func pathIn(line string) string {
	line = line[:min(len(line), 1024)]
	ends := pathEnd.FindAllStringIndex(line, -1)
	for _, end := range slices.Backward(ends) {
		if info, err := os.Stat(line[:end[0]]); err == nil && info.IsDir() {
			return line[:end[0]]
		}
	}
	return line[:ends[0][0]]
}

func trimEnd(text string) string { return strings.TrimRight(text, ".,;:)]") }

// file is the absolute path of a file of the prompt.
func (g *game) file(name string) string {
	name = trimEnd(name)
	if path.IsAbs(name) || g.dir == "" {
		return name
	}
	return path.Join(g.dir, name)
}

// say is a reply of a short text.
func say(text string) *reply { return &reply{text: []string{text}} }

// use is a reply that uses a tool, or the text if the agent has none for it.
func use(x *call, otherwise string) *reply {
	if x == nil {
		return say(otherwise)
	}
	return &reply{text: []string{"I use a tool."}, calls: []call{*x}}
}

func playRead(g *game) *reply {
	name := g.file(g.match[1])
	if len(g.results) == 0 {
		return use(g.read(name), "I cannot read files.")
	}
	return say("The file says: " + clip(last(g.results)))
}

func last(list []string) string { return list[len(list)-1] }

func playEdit(g *game) *reply {
	name, line := g.file(g.match[1]), g.match[2]
	switch len(g.results) {
	case 0: // agents want to have read what they edit
		return use(g.read(name), "I cannot read files.")
	case 1:
		return use(g.edit(name, lastLine(g.results[0]), line), "I cannot edit files.")
	}
	return say("Done.")
}

func playDelete(g *game) *reply {
	name := g.file(g.match[1])
	if len(g.results) == 0 {
		return use(g.run("rm "+shellWord(name), "Delete a file"), "I cannot delete files.")
	}
	return say("That is what became of it: " + clip(last(g.results)))
}

func playRun(g *game) *reply {
	if len(g.results) == 0 {
		return use(g.run(g.match[1], "Run a command"), "I cannot run commands.")
	}
	return say("It printed: " + clip(last(g.results)))
}

// playPlan makes a plan, reads the file of the prompt, and says that the plan was followed. Some agents offer the tool
// for plans only to a model that searches for it.
func playPlan(g *game) *reply {
	var steps []*call
	if search := g.tool(searchTools...); search != nil {
		if g.hasCalled(search.name) {
			steps = append(steps, &call{})
		} else if g.tool(planTools...) == nil {
			return use(search.call(values{query: "select:TodoWrite,todo_write"}), "")
		}
	}
	steps = append(steps, g.plan("in_progress", "pending", "pending"))
	if m := readPattern.FindStringSubmatch(g.prompt); m != nil {
		steps = append(steps, g.read(g.file(m[1])))
	}
	steps = append(steps, g.plan("completed", "in_progress", "pending"), g.plan("completed", "completed", "completed"))
	done := 0
	for _, step := range steps {
		if step == nil {
			continue
		}
		if done == len(g.results) {
			return use(step, "")
		}
		done++
	}
	return say("My plan: 1. open the file, 2. read it, 3. tell what is in it. Done.")
}

// playLong tells a story that lasts some seconds.
func playLong(*game) *reply {
	r := &reply{slow: true}
	for i := range 420 {
		r.text = append(r.text, fmt.Sprintf("And then, in chapter %d, one more thing happened to the probe. ", i+1))
	}
	return r
}

func playThink(*game) *reply {
	return &reply{thought: "9.9 has nine tenths, and 9.11 has one tenth and one hundredth.",
		text: []string{"9.9 is larger ", "than 9.11."}}
}

func playRefusal(*game) *reply {
	return &reply{text: []string{"I will not answer this."}, refusal: true}
}

func playForm(g *game) *reply {
	if len(g.results) == 0 {
		return use(g.tool(askTools...).call(values{question: "What is your name?"}), "I cannot ask with a form.")
	}
	return say("Thank you.")
}

func playMode(g *game) *reply {
	if len(g.results) == 0 {
		return use(g.tool(modeTools...).call(values{why: "To plan first"}), "I cannot switch my mode.")
	}
	return say("Done.")
}

func playMCP(g *game) *reply {
	if len(g.results) == 0 {
		return use(g.called("acp_probe").call(values{}), "I see no tools of MCP servers.")
	}
	return say("The tool says: " + clip(last(g.results)))
}

// playTool calls a tool, with a text, by its name, which agents put the server's before, and says what it returned.
// Some agents offer such tools only to a model that searches for them, and some only by a tool that calls tools.
func playTool(g *game) *reply {
	name, text := g.match[1], g.match[2]
	target, search, indirect := g.called(name), g.tool(searchTools...), g.tool("toolcall")
	switch {
	case target != nil && g.hasCalled(target.name), indirect != nil && g.hasCalled(indirect.name):
		return say("The tool says: " + clip(last(g.results)))
	case target != nil:
		return use(target.call(values{content: text}), "")
	case search != nil && !g.hasCalled(search.name):
		return use(search.call(values{query: name}), "")
	case search != nil && indirect != nil:
		found := regexp.MustCompile(`"name":\s*"(\w*` + name + `)"`).FindStringSubmatch(last(g.results))
		if found != nil {
			args, err := json.Marshal(map[string]any{"name": found[1], "arguments": map[string]string{"text": text}})
			if err == nil {
				return use(&call{name: indirect.name, args: args}, "")
			}
		}
	}
	return say("I see no such tool.")
}

var (
	lineNumber = regexp.MustCompile(`^\s*\d+\s*[→\t|:]\s?`)
	markup     = regexp.MustCompile(`^\s*(<[^>]*>.*|\(.*\)|---.*|\[.*\]|` + "```" + `.*)?$`)
)

// lastLine is the last line of a file as a tool shows it: without numbers of lines and without what is around it.
func lastLine(result string) string {
	line := ""
	for l := range strings.SplitSeq(reminder.ReplaceAllString(result, ""), "\n") {
		if text := lineNumber.ReplaceAllString(l, ""); !markup.MatchString(text) {
			line = text
		}
	}
	return strings.TrimRight(line, "\r")
}

// shellWord is a word as a shell reads it.
func shellWord(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
