package gen

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/acpgo/sdk/internal/gen/text"
)

// ParseOverrides parses a table of overrides with one override per line: the kind, the subject, for most kinds an
// equals sign and the decision, and the reason after a #.
//
//	Name         Command = SlashCommand               # Command is what starts an agent
//	Capability   session/load = loadSession           # its description says so
//	Derived      initialize                           # the handshake follows from the options
//	Member       "Odd \"name\"/a # b" = AB            # two members come to the same name
//
// A subject or value that begins with a quote, or contains " = " or " # ", is written as a Go string literal. A line
// that ends with a backslash continues on the next one. Empty lines and lines that begin with # are ignored. The
// returned lines are the numbers of the lines on which the overrides end. The error joins one error for each invalid
// line.
func ParseOverrides(table string) (overrides []Override, lines []int, err error) {
	var problems []error
	begun := ""
	for i, line := range strings.Split(table, "\n") {
		var more bool
		line = begun + strings.TrimSpace(line)
		if begun, more = strings.CutSuffix(line, "\\"); more {
			continue
		}
		if begun = ""; line == "" || line[0] == '#' {
			continue
		}
		o, err := parseOverride(line)
		if err == nil {
			if j := slices.IndexFunc(overrides, o.same); j >= 0 {
				err = fmt.Errorf("{%v, %q} is decided in line %d", o.Kind, o.Subject, lines[j])
			}
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("line %d: %w", i+1, err))
			continue
		}
		overrides, lines = append(overrides, o), append(lines, i+1)
	}
	if begun != "" {
		problems = append(problems, errors.New("the last line ends with a backslash"))
	}
	return overrides, lines, errors.Join(problems...)
}

// same reports whether two overrides make the same decision.
func (o Override) same(other Override) bool {
	return o.Kind == other.Kind && o.Subject == other.Subject
}

// statements has the kinds that need only the subject.
var statements = []Kind{Derived, ConnByHand, UsesAnswer, SessionByHand, Always, Ungated, Ignored}

func parseOverride(line string) (o Override, err error) {
	name, rest := line, ""
	if i := strings.IndexAny(line, " \t"); i >= 0 {
		name, rest = line[:i], line[i:]
	}
	kind := slices.Index(kindNames[:], name)
	if kind < 0 {
		return o, fmt.Errorf("unknown kind %q: expected one of %s", name, strings.Join(kindNames[:], ", "))
	}
	o.Kind = Kind(kind)
	if o.Subject, rest, err = word(rest); err != nil {
		return o, err
	}
	if o.Subject == "" {
		return o, fmt.Errorf("%v has no subject", o.Kind)
	}
	decides := !slices.Contains(statements, o.Kind)
	after, has := strings.CutPrefix(rest, "=")
	if has {
		if o.Value, rest, err = word(after); err != nil {
			return o, err
		}
	}
	switch {
	case decides && o.Value == "":
		return o, fmt.Errorf("{%v, %q} decides nothing: expected = and a value after the subject", o.Kind, o.Subject)
	case !decides && has:
		return o, fmt.Errorf("{%v, %q} has no value: expected nothing but a reason after the subject", o.Kind, o.Subject)
	}
	why, has := strings.CutPrefix(rest, "#")
	if o.Why = strings.TrimSpace(why); !has || o.Why == "" {
		return o, fmt.Errorf("{%v, %q} has no reason: expected # and one at the end", o.Kind, o.Subject)
	}
	return o, nil
}

// word reads a subject or value, and returns it with the rest of the line, which begins with an equals sign or a #.
func word(s string) (word, rest string, err error) {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, `"`) {
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return "", "", errors.New("a string does not end")
		}
		if word, err = strconv.Unquote(quoted); err != nil {
			return "", "", err
		}
		return word, strings.TrimSpace(s[len(quoted):]), nil
	}
	padded := " " + s + " "
	end := len(padded)
	for _, mark := range []string{" = ", " # ", "\t= ", "\t# "} {
		if i := strings.Index(padded, mark); i >= 0 {
			end = min(end, i)
		}
	}
	word = strings.TrimSpace(padded[:end])
	if text.Line(word) != word {
		return "", "", fmt.Errorf("%q has characters that do not show: write it as a string of Go", word)
	}
	return word, strings.TrimSpace(padded[end:]), nil
}

// String returns the override as a line of a table.
func (o Override) String() string {
	quote := func(s string) string {
		if got, rest, err := word(s + " #"); s == "" || s[0] == '"' || s[0] == '=' || s[0] == '#' || err != nil || got != s ||
			rest != "#" {
			return strconv.Quote(s)
		}
		return s
	}
	line := fmt.Sprintf("%-13s %s", o.Kind, quote(o.Subject))
	if !slices.Contains(statements, o.Kind) {
		line += " = " + quote(o.Value)
	}
	return line + " # " + text.Line(o.Why)
}
