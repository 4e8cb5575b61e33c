// Only people can decide whether a capability gates a method, but the text of a schema can raise the question.

package gen

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/acpgo/sdk/internal/gen/model"
)

// A Question asks about a method, or a member or variant of its parameters, that has no gate but looks as if a
// capability gated it. An override of kind Capability, Needs or Ungated answers it.
type Question struct {
	Subject string // as for [Needs]: the method, and after a space the member or variant
	Pointer string // of the parameters, the member or the variant
	Text    string // the reason for the question
}

func (q Question) String() string {
	kind := Capability
	if strings.Contains(q.Subject, " ") {
		kind = Needs
	}
	return fmt.Sprintf("%s: does a capability gate %s? %s. Answer by an override {%v, %q, …}, or {Ungated, %[2]q}",
		q.Pointer, q.Subject, q.Text, kind, q.Subject)
}

// questions returns the questions about methods of sides whose capabilities are known.
func questions(pkg *model.Package, j *decisions) (out []Question) {
	for _, m := range pkg.Methods {
		caps := pkg.Capabilities[m.Side]
		if caps == nil || m.Derived {
			continue
		}
		paths, parts := capabilityPaths(caps, "", nil), needs(m)
		for _, n := range append(parts[1:], parts[0]) { // the method itself comes last
			whole := n.Field == nil && n.Variant == nil
			if whole && len(m.Capability) > 0 || slices.ContainsFunc(m.Needs,
				func(o model.Need) bool { return o.Field == n.Field && o.Variant == n.Variant }) {
				continue
			}
			q := Question{Subject: n.subject}
			if whole {
				q.Pointer, q.Text = m.Pointer, looksGated(pkg, m, paths)
			} else {
				q.Pointer, q.Text = n.looksGated(m, paths)
			}
			if q.Text == "" {
				continue
			}
			if _, answered := j.find(Ungated, q.Subject); !answered {
				out = append(out, q)
			}
		}
	}
	return out
}

// looksGated returns the place of a member or variant of a method's parameters, and the reason why it looks as if one
// of the capabilities gated it, or "".
func (n *need) looksGated(m *model.Method, capabilities []capabilityPath) (at, why string) {
	var doc, name string
	if v := n.Variant; v != nil {
		doc, at, name = v.Doc, v.Pointer, v.Tag
		if v.Payload != nil {
			doc += "\n" + v.Payload.Base().Doc
		}
	} else {
		doc, at, name = n.Field.Doc, n.Field.Pointer, n.Field.JSON
	}
	if says := onlyAdvertised.FindString(strings.ReplaceAll(doc, notSpeaking, "")); says != "" {
		return at, fmt.Sprintf("Its description says %q", strings.Join(strings.Fields(says), " "))
	}
	for _, c := range capabilities {
		if last := c.path[strings.LastIndex(c.path, ".")+1:]; name != "" && c.path != model.DottedPath(m.Capability) &&
			(last == name || strings.Contains(c.doc, "`"+name+"`")) {
			return at, fmt.Sprintf("The capability %s names it", c.path)
		}
	}
	return at, ""
}

// onlyAdvertised matches a sentence that restricts something to sides with a capability.
var onlyAdvertised = regexp.MustCompile(`(?i)(?:[^.]|\.\S)*\b(?:only|must not|requires?)\b(?:[^.]|\.\S)*\b(?:advertis(?:e|es|ed|ing)|capability|capabilities|supports?)\b(?:[^.]|\.\S)*`)

// capabilityPath is a capability that a side can advertise.
type capabilityPath struct {
	path  string
	doc   string
	field *model.Field
}

// capabilityPaths returns all capabilities that can be advertised with d.
func capabilityPaths(d model.Decl, prefix string, above []model.Decl) []capabilityPath {
	if slices.Contains(above, d) {
		return nil
	}
	var out []capabilityPath
	for _, f := range model.Fields(d) {
		if _, meta := f.Type.(model.Meta); meta {
			continue
		}
		c := capabilityPath{prefix + f.JSON, f.Doc, f}
		named, ok := f.Type.(model.Named)
		if ok {
			c.doc += "\n" + named.Decl.Base().Doc
		}
		if out = append(out, c); ok {
			out = append(out, capabilityPaths(named.Decl, c.path+".", append(above, d))...)
		}
	}
	return out
}

// speaksOfCapability matches a sentence that says that not every side supports something. notSpeaking matches a
// sentence that all unstable things have.
var (
	speaksOfCapability = regexp.MustCompile("(?i)(?:[^.\n]|\\.\\S)*\\b(?:capability|capabilities|only " +
		"available|(?:if|when) the (?:agent|client|peer) (?:supports|advertises|offers))\\b(?:[^.\n]|\\.\\S)*")
	notSpeaking = "This capability is not part of the spec yet"
)

// looksGated returns the reason why it looks as if one of the capabilities gated a method, or "".
func looksGated(pkg *model.Package, m *model.Method, capabilities []capabilityPath) string {
	docs := []string{m.Doc, m.Params.Base().Doc}
	if m.Request() {
		docs = append(docs, m.Result.Base().Doc)
	}
	for _, doc := range docs {
		if says := speaksOfCapability.FindString(strings.ReplaceAll(doc, notSpeaking, "")); says != "" {
			return fmt.Sprintf("Its description says %q", strings.TrimSpace(says))
		}
	}
	mentions := regexp.MustCompile(`(?:^|[^\w/.$-])` + regexp.QuoteMeta(m.Name) + `(?:$|[^\w/-])`)
	for _, c := range capabilities {
		if mentions.MatchString(c.doc) {
			return fmt.Sprintf("The description of the capability %s names it", c.path)
		}
	}
	family, own := words(strings.ToLower(m.Name)), ""
	if len(family) > 1 {
		own = strings.Join(family[1:], "")
	}
	for _, c := range capabilities {
		names := strings.Split(strings.ToLower(c.path), ".")
		last := names[len(names)-1]
		of := strings.Join(names[:len(names)-1], ".")
		if own != "" && (last == own && strings.Contains(of, family[0]) || last == family[0]+own || last == own+family[0]) {
			return fmt.Sprintf("The capability %s goes by its name", c.path)
		}
	}
	prefix := cmp.Or(m.Name[:strings.LastIndex(m.Name, "/")+1], m.Name)
	for _, other := range pkg.Methods {
		if other.Side != m.Side || len(other.Capability) != 1 || !strings.HasPrefix(other.Name, prefix) {
			continue
		}
		if path := other.Capability[0].JSON; strings.EqualFold(path, strings.TrimSuffix(prefix, "/")) {
			return fmt.Sprintf("The capability %s gates %s", path, other.Name)
		}
	}
	return ""
}

// idle returns the capabilities that gate nothing: only hand-written code can advertise and use them.
func idle(pkg *model.Package) (out []string) {
	gates := map[*model.Field]bool{}
	for _, m := range pkg.Methods {
		for _, need := range append(slices.Clone(m.Needs), model.Need{Capability: m.Capability}) {
			for _, f := range need.Capability {
				gates[f] = true
			}
		}
	}
	for _, side := range []model.Side{model.Agent, model.Client} {
		if d := pkg.Capabilities[side]; d != nil {
			for _, c := range capabilityPaths(d, "", nil) {
				if !gates[c.field] {
					out = append(out, fmt.Sprintf("the capability %s of the %s gates nothing", c.path, side))
				}
			}
		}
	}
	return out
}
