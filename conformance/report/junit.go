package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/acpgo/sdk/internal/plain"
)

type (
	junitSuites struct {
		XMLName  xml.Name `xml:"testsuites"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Errors   int      `xml:"errors,attr"`
		Suites   []*junitSuite
	}
	junitSuite struct {
		XMLName  xml.Name `xml:"testsuite"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Errors   int      `xml:"errors,attr"`
		Skipped  int      `xml:"skipped,attr"`
		Time     int      `xml:"time,attr"` // always 0: all tests are judged in the same pass
		Cases    []junitCase
	}
	junitCase struct {
		XMLName   xml.Name `xml:"testcase"`
		Classname string   `xml:"classname,attr"`
		Name      string   `xml:"name,attr"`
		Time      int      `xml:"time,attr"`
		Skipped   *junitMessage
		Failure   *junitMessage
		Error     *junitMessage
	}
	junitMessage struct {
		XMLName xml.Name
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

func (r *Report) writeJUnit(w io.Writer) error {
	doc := junitSuites{Name: r.options.Tool}
	suite := func(name string) *junitSuite {
		for _, s := range doc.Suites {
			if s.Name == name {
				return s
			}
		}
		s := &junitSuite{Name: name}
		doc.Suites = append(doc.Suites, s)
		return s
	}
	for _, s := range r.sources {
		c := junitCase{Classname: "acp.recordings", Name: plain.Line(s.Name)}
		if len(s.Problems) > 0 {
			var text strings.Builder
			for _, p := range s.Problems {
				fmt.Fprintf(&text, "%s\n", plain.Line(s.placeOf(p)+" "+p.Text))
			}
			c.Error = message("error", plain.Line(s.Problems[0].Text), "recording", text.String())
		}
		suite("recordings").add(c)
	}
	seen := map[string]bool{}
	for _, rule := range r.rules {
		seen[rule.ID] = true
		suite(rule.Page).add(r.junitCase(rule.ID, rule.Page, rule.Text))
	}
	for _, g := range r.sortedGroups() {
		if !seen[g.rule.ID] {
			suite("other").add(r.junitCase(g.rule.ID, "other", ""))
		}
	}
	return doc.write(w)
}

// add adds a test and counts it.
func (s *junitSuite) add(c junitCase) {
	s.Tests++
	switch {
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
}

// write writes the document, with the counts filled in.
func (d *junitSuites) write(w io.Writer) error {
	for _, s := range d.Suites {
		d.Tests += s.Tests
		d.Failures += s.Failures
		d.Errors += s.Errors
	}
	text, err := xml.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}

// junitCase returns the test of a requirement. It fails if there are findings that count, and is skipped if all
// findings are accepted or the requirement does not count.
func (r *Report) junitCase(id, page, text string) junitCase {
	c := junitCase{Classname: "acp." + page, Name: strings.TrimSpace(id + " " + text)}
	g := r.groups[id]
	switch {
	case g == nil:
		for _, rule := range r.rules {
			other := r.options.Side != 0 && rule.Side == r.options.Side.Peer()
			if rule.ID == id && (other || rule.Level > r.options.Level || !r.selects(id)) {
				c.Skipped = message("skipped",
					"not counted because of its level or side, or because other requirements were selected", "", "")
			}
		}
	case g.count > 0:
		var b strings.Builder
		p := newPainter(&b, nil)
		p.entries(g)
		p.Flush() // to a strings.Builder: it cannot fail
		c.Failure = message("failure",
			fmt.Sprintf("%s: %s", plural(g.count, "finding"), plain.Line(g.entries()[0].describe())), g.level().String(),
			"\n"+b.String())
	case g.accepted > 0:
		c.Skipped = message("skipped",
			fmt.Sprintf("%s accepted: %s", plural(g.accepted, "finding"), plain.Line(g.kept[0].Accepted)), "", "")
	}
	return c
}

func message(element, text, kind, body string) *junitMessage {
	return &junitMessage{xml.Name{Local: element}, text, kind, body}
}
