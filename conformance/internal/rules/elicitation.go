// Rules of the page elicitation.

package rules

import (
	"maps"
	"math"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

var elicitationRules = []judge.Rule{
	{
		ID:       "ELI-5",
		Versions: both,
		Breaks:   "elicitation/create of mode form to a client that does not state elicitation.form, or of mode url to one that does not state elicitation.url.",
		Right:    withElicitation + `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"url","elicitationId":"e1","url":"https://example.com/login","message":"Log in"}}`,
		Wrong:    `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"url","elicitationId":"e1","url":"https://example.com/login","message":"Log in"}}`,
		On:       requests(judge.MethodElicit),
		Check: func(e *judge.Event) {
			if mode := e.Text("mode"); mode == "form" || mode == "url" {
				e.Needs(&e.Client, "elicitation."+mode)
			}
		},
	},
	{
		ID:       "ELI-11",
		Versions: both,
		Breaks:   "A form with a free text field whose name or title is that of a secret: password, API key, access token, card number. (Milder than its requirement: it goes by words.)",
		Right:    withElicitation + `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"form","message":"Who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","title":"Name"}}}}}`,
		Wrong:    withElicitation + `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"form","message":"Log in","requestedSchema":{"type":"object","properties":{"apiKey":{"type":"string","title":"API key"}}}}}`,
		On:       requests(judge.MethodElicit),
		Check: func(e *judge.Event) {
			for name, property := range e.Content.Members("requestedSchema", "properties") {
				free := property.Text("type") == "string" && !property.Given("enum") && !property.Given("oneOf")
				if free && (asksForSecret(name) || asksForSecret(property.Text("title"))) {
					e.Broken(schema.Pointer("/requestedSchema/properties", name), "asks for a secret: that is for the mode url").Mildly(finding.Should)
				}
			}
		},
	},
	{
		ID:       "ELI-15",
		Versions: both,
		Breaks:   "Accepted content that its requestedSchema does not allow: a required member is missing, or a value has the wrong type, is none of the choices or out of bounds.",
		Right: withElicitation + `
			<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{"size":{"type":"string","enum":["s","l"]}},"required":["size"]}}}
			-> {"jsonrpc":"2.0","id":"e","result":{"action":"accept","content":{"size":"l"}}}`,
		Wrong: withElicitation + `
			<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{"size":{"type":"string","enum":["s","l"]}},"required":["size"]}}}
			-> {"jsonrpc":"2.0","id":"e","result":{"action":"accept","content":{"size":"xl"}}}`,
		On: results(judge.MethodElicit),
		Check: func(e *judge.Event) {
			form := e.Request.Params.Member("requestedSchema")
			if e.Text("action") != "accept" || e.Request.Params.Text("mode") != "form" || !form.IsObject() || !e.Sound("/content") {
				return
			}
			// The form is small; the content is read once, however long it is.
			properties, missing := map[string]*schema.Value{}, map[string]bool{}
			maps.Insert(properties, form.Members("properties"))
			for _, name := range form.Items("required") {
				if name.IsText() {
					missing[name.Text()] = true
				}
			}
			for name, v := range e.Content.Members("content") {
				if v == nil {
					continue
				}
				delete(missing, name)
				if property := properties[name]; property != nil {
					if wrong := mismatch(v, property); wrong != "" {
						e.Broken(schema.Pointer("/content", name), "%s", wrong).Because(e.Request.At, "the form")
					}
				}
			}
			for _, name := range slices.Sorted(maps.Keys(missing)) {
				e.Broken("/content", "lacks the required member %q", finding.Clip(name)).Because(e.Request.At, "the form")
			}
		},
	},
	{
		ID:       "ELI-19",
		Versions: both,
		Breaks:   "An elicitationId of one that is outstanding: it was neither completed, nor declined, cancelled or refused.",
		Right: withElicitation + `
			<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"url","elicitationId":"e1","url":"https://example.com/login","message":"Log in"}}
			-> {"jsonrpc":"2.0","id":"e","result":{"action":"accept"}}
			<- {"jsonrpc":"2.0","method":"elicitation/complete","params":{"elicitationId":"e1"}}
			<- {"jsonrpc":"2.0","id":"f","method":"elicitation/create","params":{"sessionId":"s","mode":"url","elicitationId":"e1","url":"https://example.com/login","message":"Log in"}}`,
		Wrong: withElicitation + `
			<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"url","elicitationId":"e1","url":"https://example.com/login","message":"Log in"}}
			<- {"jsonrpc":"2.0","id":"f","method":"elicitation/create","params":{"sessionId":"s","mode":"url","elicitationId":"e1","url":"https://example.com/login","message":"Log in"}}`,
		On: requests(judge.MethodElicit),
		Check: func(e *judge.Event) {
			id := e.Text("elicitationId")
			if before, ok := e.Elicitations.Get(id); ok && id != "" && !before.Over && before.Completed == nil {
				e.Broken("/elicitationId", "%q is outstanding", finding.Clip(id)).Because(before.At, "the elicitation with this id")
			}
		},
	},
	{
		ID:       "ELI-21",
		Versions: both,
		Breaks:   "elicitation/complete with an id that no elicitation/create of this connection had, when no session is from before the connection.",
		Right: withElicitation + `
			<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"url","elicitationId":"e1","url":"https://example.com/login","message":"Log in"}}
			-> {"jsonrpc":"2.0","id":"e","result":{"action":"accept"}}
			<- {"jsonrpc":"2.0","method":"elicitation/complete","params":{"elicitationId":"e1"}}`,
		Wrong: withElicitation + `<- {"jsonrpc":"2.0","method":"elicitation/complete","params":{"elicitationId":"e1"}}`,
		On:    notifications(judge.MethodElicitComplete),
		Check: func(e *judge.Event) {
			id := e.Text("elicitationId")
			if _, ok := e.Elicitations.Get(id); !ok && id != "" && !e.Elicitations.Forgot && !e.HasOlderSessions() {
				e.Broken("/elicitationId", "no elicitation has the id %q", finding.Clip(id))
			}
		},
	},
	{
		ID:       "ELI-23",
		Versions: both,
		Breaks: "A request for a mode that the client does not state, answered otherwise than with the code -32602. " +
			"(-32601 is right too, where the client states no mode at all.)",
		Right: `
			<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"url","elicitationId":"e1","url":"https://example.com/login","message":"Log in"}}
			-> {"jsonrpc":"2.0","id":"e","error":{"code":-32602,"message":"no such mode"}}`,
		Wrong: `
			<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"url","elicitationId":"e1","url":"https://example.com/login","message":"Log in"}}
			-> {"jsonrpc":"2.0","id":"e","error":{"code":-32603,"message":"no such mode"}}`,
		On: answers(judge.MethodElicit),
		Check: func(e *judge.Event) {
			mode := e.Request.Params.Text("mode")
			code, _ := e.Content.Integer("code")
			none := !e.Client.Can("elicitation.form") && !e.Client.Can("elicitation.url")
			switch {
			case e.Sender() != finding.Client || mode != "form" && mode != "url" || e.Client.Can("elicitation."+mode):
			case e.Kind == finding.ErrorReply && (code == codeParams || code == codeCancelled || code == codeMethod && none):
			default:
				e.Broken("", "the client does not state the mode %s and must say so with the code %d", mode, codeParams).
					Because(e.Client.At, "its capabilities").Because(e.Request.At, "the request")
			}
		},
	},
	{
		ID:       "ELI-25",
		Versions: both,
		Breaks: "A URL with a password before its host, or with a parameter that is named like a credential (password, client_secret, access_token). " +
			"Milder: names that often are one (token, key, auth, email).",
		Right: withElicitation + `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"url","elicitationId":"e1","url":"https://example.com/login?state=e1","message":"Log in"}}`,
		Wrong: withElicitation + `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"url","elicitationId":"e1","url":"https://example.com/login?access_token=5EC2E7","message":"Log in"}}`,
		On:    requests(judge.MethodElicit),
		Check: func(e *judge.Event) {
			u := elicitedURL(e)
			if u == nil {
				return
			}
			if _, password := u.User.Password(); password {
				e.Broken("/url", "has a password before the host")
				return
			}
			for _, part := range []string{u.RawQuery, u.EscapedFragment()} {
				for pair := range strings.FieldsFuncSeq(part, func(r rune) bool { return r == '&' || r == ';' || r == '?' }) {
					name, value, _ := strings.Cut(pair, "=")
					if value == "" {
						continue
					}
					switch name = unstyled(name); {
					case credentials[name]:
						e.Broken("/url", "has a parameter %q: a credential", finding.Clip(name))
						return
					case likelyCredentials[name]:
						e.Broken("/url", "has a parameter %q, which may be a credential or personal", finding.Clip(name)).Mildly(finding.Should)
						return
					}
				}
			}
		},
	},
	{
		ID:       "ELI-26",
		Versions: both,
		Breaks:   "A URL whose scheme is not https and whose host is not one of development: localhost, a local or private address, .local, .test.",
		Right:    withElicitation + `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"url","elicitationId":"e1","url":"http://localhost:8080/login","message":"Log in"}}`,
		Wrong:    withElicitation + `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"url","elicitationId":"e1","url":"http://example.com/login","message":"Log in"}}`,
		On:       requests(judge.MethodElicit),
		Check: func(e *judge.Event) {
			u := elicitedURL(e)
			if u != nil && !strings.EqualFold(u.Scheme, "https") && !(strings.EqualFold(u.Scheme, "http") && isDevelopmentHost(u.Hostname())) {
				e.Broken("/url", "is not an https URL")
			}
		},
	},
	{
		ID:       "ELI-27",
		Versions: both,
		Breaks:   "A form with an http or https URL in its message, or in a title or description.",
		Right:    withElicitation + `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{"site":{"type":"string","format":"uri"}}}}}`,
		Wrong:    withElicitation + `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"form","message":"See https://example.com/help","requestedSchema":{"type":"object","properties":{"site":{"type":"string","format":"uri"}}}}}`,
		On:       requests(judge.MethodElicit),
		Check: func(e *judge.Event) {
			if e.Text("mode") != "form" {
				return
			}
			requireNoURL(e, "", e.Content, "message")
			requireNoURL(e, "/requestedSchema", e.Content.Member("requestedSchema"), "title", "description")
			for name, property := range e.Content.Members("requestedSchema", "properties") {
				where := schema.Pointer("/requestedSchema/properties", name)
				requireNoURL(e, where, property, "title", "description")
				for i, choice := range property.Items("oneOf") {
					requireNoURL(e, schema.Element(where+"/oneOf", i), choice, "title", "description")
				}
				for i, choice := range property.Items("items", "anyOf") {
					requireNoURL(e, schema.Element(where+"/items/anyOf", i), choice, "title", "description")
				}
			}
		},
	},
	{
		ID:     "ELI-34",
		Breaks: "elicitation/create with both a sessionId and a requestId. (One with neither, or without mode, does not fit the schema; in version 2 nor does one with both.)",
		Right:  withElicitation + `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","toolCallId":"c","mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{}}}}`,
		Wrong:  withElicitation + `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","requestId":1,"mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{}}}}`,
		On:     requests(judge.MethodElicit),
		Check: func(e *judge.Event) {
			if e.Given("sessionId") && e.Has("requestId") {
				e.Broken("/requestId", "not beside a sessionId")
			}
		},
	},
}

// unstyled is a name without what styles of naming differ in.
func unstyled(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' || unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// credentials are names of parameters that hold one, likelyCredentials those that may.
var (
	credentials = stringSet("password", "passwd", "pwd", "secret", "clientsecret", "apikey", "apisecret", "accesstoken", "refreshtoken",
		"idtoken", "authtoken", "bearertoken", "sessiontoken", "privatekey", "authorization")
	likelyCredentials = stringSet("token", "key", "auth", "sig", "signature", "email", "username", "ssn")
)

// secretNames are names of fields that ask for a secret, secretParts are parts of such names.
var (
	secretNames = stringSet("secret", "token", "pin", "otp", "cvv", "cvc", "pwd", "ssn")
	secretParts = []string{"password", "passwd", "passphrase", "passcode", "apikey", "secretkey", "clientsecret", "accesstoken",
		"authtoken", "bearertoken", "refreshtoken", "privatekey", "credential", "securitycode", "creditcard", "cardnumber"}
)

// asksForSecret reports whether a field of this name or title asks for a secret, and not for the name of one or about one.
func asksForSecret(name string) bool {
	if len(name) > finding.MaxText || strings.HasSuffix(name, "?") {
		return false
	}
	name = unstyled(name)
	if secretNames[name] {
		return true
	}
	for _, about := range []string{"name", "policy", "length", "path", "file", "manager", "hint", "url", "variable", "id"} {
		if strings.HasSuffix(name, about) {
			return false
		}
	}
	for _, part := range secretParts {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

func stringSet(names ...string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}

// elicitedURL is the URL of an elicitation of mode url, nil if it has none that can be read.
func elicitedURL(e *judge.Event) *url.URL {
	if e.Text("mode") != "url" || !e.Sound("/url") {
		return nil
	}
	u, err := url.Parse(e.Text("url"))
	if err != nil || u.Scheme == "" {
		return nil
	}
	return u
}

// isDevelopmentHost reports whether a host is this machine, or on a local or private network.
func isDevelopmentHost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, suffix := range []string{"localhost", ".local", ".test", ".internal"} {
		if host == suffix || strings.HasSuffix(host, "."+strings.TrimPrefix(suffix, ".")) {
			return true
		}
	}
	address, err := netip.ParseAddr(host)
	return err == nil && (address.IsLoopback() || address.IsPrivate() || address.IsLinkLocalUnicast() || address.IsUnspecified())
}

var clickable = regexp.MustCompile(`(?i)\bhttps?://\S`)

// requireNoURL reports URLs in the members of an object that are shown to the user.
func requireNoURL(e *judge.Event, where string, v *schema.Value, names ...string) {
	for _, name := range names {
		if clickable.MatchString(v.Text(name)) {
			e.Broken(where+"/"+name, "has a URL")
		}
	}
}

// mismatch says why a value is not what the property of a form allows, "" if it is. What only the implementation of a
// regular expression or of a format can decide is left to it.
func mismatch(v, property *schema.Value) string {
	switch property.Text("type") {
	case "string":
		if !v.IsText() {
			return "is not a string"
		}
		return stringMismatch(v.Text(), property)
	case "boolean":
		if !v.IsBoolean() {
			return "is no boolean"
		}
	case "integer", "number":
		n, ok := v.Decimal()
		switch least, most := bound(property, "minimum", math.Inf(-1)), bound(property, "maximum", math.Inf(1)); {
		case !ok:
			return "is not a number"
		case property.Text("type") == "integer" && n != math.Trunc(n):
			return "is not an integer"
		case n < least:
			return "is too small"
		case n > most:
			return "is too large"
		}
	case "array":
		if !v.IsArray() {
			return "is not an array"
		}
		if n := float64(v.Len()); n < bound(property, "minItems", 0) || n > bound(property, "maxItems", math.Inf(1)) {
			return "has too few or too many items"
		}
		choices := choicesOf(property.Member("items"), "enum", "anyOf")
		for _, item := range v.Items() {
			if !item.IsText() || choices != nil && !choices[item.Text()] {
				return "has an item that is none of the choices"
			}
		}
	}
	return ""
}

func stringMismatch(s string, property *schema.Value) string {
	n := float64(utf8.RuneCountInString(s))
	choices := choicesOf(property, "enum", "oneOf")
	switch format := property.Text("format"); {
	case choices != nil && !choices[s]:
		return "is none of the choices"
	case n < bound(property, "minLength", 0):
		return "is too short"
	case n > bound(property, "maxLength", math.Inf(1)):
		return "is too long"
	case format == "email" && !strings.Contains(s, "@"):
		return "is no email address"
	case format == "date":
		if _, err := time.Parse(time.DateOnly, s); err != nil {
			return "is no date"
		}
	}
	return ""
}

// choicesOf are the choices in two lists, of texts and of objects with a const; nil if there is neither.
func choicesOf(v *schema.Value, texts, objects string) map[string]bool {
	if !v.Member(texts).IsArray() && !v.Member(objects).IsArray() {
		return nil
	}
	choices := map[string]bool{}
	for _, item := range v.Items(texts) {
		choices[item.Text()] = true
	}
	for _, item := range v.Items(objects) {
		choices[item.Text("const")] = true
	}
	return choices
}

// bound is a number in a schema, otherwise where there is none.
func bound(v *schema.Value, name string, otherwise float64) float64 {
	if n, ok := v.Member(name).Decimal(); ok {
		return n
	}
	return otherwise
}
