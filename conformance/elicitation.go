// Rules of the page elicitation.

package conformance

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
)

var elicitationRules = []rule{
	{
		ID:       "ELI-5",
		Versions: both,
		Breaks:   "elicitation/create of mode form to a client that does not state elicitation.form, or of mode url to one that does not state elicitation.url.",
		Right:    withElicitation + `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"url","elicitationId":"e1","url":"https://example.com/login","message":"Log in"}}`,
		Wrong:    `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"url","elicitationId":"e1","url":"https://example.com/login","message":"Log in"}}`,
		on:       requests(methodElicit),
		check: func(e *event) {
			if mode := e.text("mode"); mode == "form" || mode == "url" {
				e.needs(&e.client, "elicitation."+mode)
			}
		},
	},
	{
		ID:       "ELI-11",
		Versions: both,
		Breaks:   "A form with a free text field whose name or title is that of a secret: password, API key, access token, card number. (Milder than its requirement: it goes by words.)",
		Right:    withElicitation + `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"form","message":"Who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","title":"Name"}}}}}`,
		Wrong:    withElicitation + `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"form","message":"Log in","requestedSchema":{"type":"object","properties":{"apiKey":{"type":"string","title":"API key"}}}}}`,
		on:       requests(methodElicit),
		check: func(e *event) {
			for name, property := range membersOf(e.content, "requestedSchema", "properties") {
				free := text(property, "type") == "string" && !given(property, "enum") && !given(property, "oneOf")
				if free && (secret(name) || secret(text(property, "title"))) {
					e.broken(pointer("/requestedSchema/properties", name), "asks for a secret: that is for the mode url").mildly(Should)
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
		on: results(methodElicit),
		check: func(e *event) {
			schema := member(e.request.params, "requestedSchema")
			if e.text("action") != "accept" || text(e.request.params, "mode") != "form" || !isObject(schema) || !e.sound("/content") {
				return
			}
			// The form is small; the content is read once, however long it is.
			properties, missing := map[string]value{}, map[string]bool{}
			maps.Insert(properties, membersOf(schema, "properties"))
			for _, name := range items(schema, "required") {
				if isText(name) {
					missing[text(name)] = true
				}
			}
			for name, v := range membersOf(e.content, "content") {
				if v == nil {
					continue
				}
				delete(missing, name)
				if property := properties[name]; property != nil {
					if wrong := unlike(v, property); wrong != "" {
						e.broken(pointer("/content", name), "%s", wrong).because(e.request.at, "the form")
					}
				}
			}
			for _, name := range slices.Sorted(maps.Keys(missing)) {
				e.broken("/content", "lacks the required member %q", clip(name)).because(e.request.at, "the form")
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
		on: requests(methodElicit),
		check: func(e *event) {
			id := e.text("elicitationId")
			if before, ok := e.elicitations.get(id); ok && id != "" && !before.over && before.completed == nil {
				e.broken("/elicitationId", "%q is outstanding", clip(id)).because(before.at, "the elicitation with this id")
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
		on:    notifications(methodElicitComplete),
		check: func(e *event) {
			id := e.text("elicitationId")
			if _, ok := e.elicitations.get(id); !ok && id != "" && !e.elicitations.forgot && !e.hasOlderSessions() {
				e.broken("/elicitationId", "no elicitation has the id %q", clip(id))
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
		on: answers(methodElicit),
		check: func(e *event) {
			mode := text(e.request.params, "mode")
			code, _ := integer(e.content, "code")
			none := !e.client.can("elicitation.form") && !e.client.can("elicitation.url")
			switch {
			case e.sender() != Client || mode != "form" && mode != "url" || e.client.can("elicitation."+mode):
			case e.kind == ErrorReply && (code == codeParams || code == codeCancelled || code == codeMethod && none):
			default:
				e.broken("", "the client does not state the mode %s and must say so with the code %d", mode, codeParams).
					because(e.client.at, "its capabilities").because(e.request.at, "the request")
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
		on:    requests(methodElicit),
		check: func(e *event) {
			u := e.elicitedURL()
			if u == nil {
				return
			}
			if _, password := u.User.Password(); password {
				e.broken("/url", "has a password before the host")
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
						e.broken("/url", "has a parameter %q: a credential", clip(name))
						return
					case likelyCredentials[name]:
						e.broken("/url", "has a parameter %q, which may be a credential or personal", clip(name)).mildly(Should)
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
		on:       requests(methodElicit),
		check: func(e *event) {
			u := e.elicitedURL()
			if u != nil && !strings.EqualFold(u.Scheme, "https") && !(strings.EqualFold(u.Scheme, "http") && ofDevelopment(u.Hostname())) {
				e.broken("/url", "is not an https URL")
			}
		},
	},
	{
		ID:       "ELI-27",
		Versions: both,
		Breaks:   "A form with an http or https URL in its message, or in a title or description.",
		Right:    withElicitation + `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{"site":{"type":"string","format":"uri"}}}}}`,
		Wrong:    withElicitation + `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"form","message":"See https://example.com/help","requestedSchema":{"type":"object","properties":{"site":{"type":"string","format":"uri"}}}}}`,
		on:       requests(methodElicit),
		check: func(e *event) {
			if e.text("mode") != "form" {
				return
			}
			e.noURL("", e.content, "message")
			e.noURL("/requestedSchema", member(e.content, "requestedSchema"), "title", "description")
			for name, property := range membersOf(e.content, "requestedSchema", "properties") {
				where := pointer("/requestedSchema/properties", name)
				e.noURL(where, property, "title", "description")
				for i, choice := range items(property, "oneOf") {
					e.noURL(element(where+"/oneOf", i), choice, "title", "description")
				}
				for i, choice := range items(property, "items", "anyOf") {
					e.noURL(element(where+"/items/anyOf", i), choice, "title", "description")
				}
			}
		},
	},
	{
		ID:     "ELI-34",
		Breaks: "elicitation/create with both a sessionId and a requestId. (One with neither, or without mode, does not fit the schema; in version 2 nor does one with both.)",
		Right:  withElicitation + `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","toolCallId":"c","mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{}}}}`,
		Wrong:  withElicitation + `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","requestId":1,"mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{}}}}`,
		on:     requests(methodElicit),
		check: func(e *event) {
			if e.given("sessionId") && e.has("requestId") {
				e.broken("/requestId", "not beside a sessionId")
			}
		},
	},
}

// withElicitation begins examples: the client has both modes.
var withElicitation = connected(`{"elicitation":{"form":{},"url":{}}}`)

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
	credentials = setOf("password", "passwd", "pwd", "secret", "clientsecret", "apikey", "apisecret", "accesstoken", "refreshtoken",
		"idtoken", "authtoken", "bearertoken", "sessiontoken", "privatekey", "authorization")
	likelyCredentials = setOf("token", "key", "auth", "sig", "signature", "email", "username", "ssn")
)

// secretNames are names of fields that ask for a secret, secretParts are parts of such names.
var (
	secretNames = setOf("secret", "token", "pin", "otp", "cvv", "cvc", "pwd", "ssn")
	secretParts = []string{"password", "passwd", "passphrase", "passcode", "apikey", "secretkey", "clientsecret", "accesstoken",
		"authtoken", "bearertoken", "refreshtoken", "privatekey", "credential", "securitycode", "creditcard", "cardnumber"}
)

// secret reports whether a field of this name or title asks for a secret, and not for the name of one or about one.
func secret(name string) bool {
	if len(name) > maxText || strings.HasSuffix(name, "?") {
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

func setOf(names ...string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}

// elicitedURL is the URL of an elicitation of mode url, nil if it has none that can be read.
func (e *event) elicitedURL() *url.URL {
	if e.text("mode") != "url" || !e.sound("/url") {
		return nil
	}
	u, err := url.Parse(e.text("url"))
	if err != nil || u.Scheme == "" {
		return nil
	}
	return u
}

// ofDevelopment reports whether a host is this machine, or on a local or private network.
func ofDevelopment(host string) bool {
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

// noURL reports URLs in the members of an object that are shown to the user.
func (e *event) noURL(where string, v value, names ...string) {
	for _, name := range names {
		if clickable.MatchString(text(v, name)) {
			e.broken(where+"/"+name, "has a URL")
		}
	}
}

// unlike says why a value is not what the property of a form allows, "" if it is. What only the implementation of a
// regular expression or of a format can decide is left to it.
func unlike(v, property value) string {
	switch text(property, "type") {
	case "string":
		if !isText(v) {
			return "is not a string"
		}
		return unlikeString(text(v), property)
	case "boolean":
		if !isBoolean(v) {
			return "is no boolean"
		}
	case "integer", "number":
		n, ok := decimal(v)
		switch least, most := bound(property, "minimum", math.Inf(-1)), bound(property, "maximum", math.Inf(1)); {
		case !ok:
			return "is not a number"
		case text(property, "type") == "integer" && n != math.Trunc(n):
			return "is not an integer"
		case n < least:
			return "is too small"
		case n > most:
			return "is too large"
		}
	case "array":
		if !isArray(v) {
			return "is not an array"
		}
		if n := float64(length(v)); n < bound(property, "minItems", 0) || n > bound(property, "maxItems", math.Inf(1)) {
			return "has too few or too many items"
		}
		choices := choicesOf(member(property, "items"), "enum", "anyOf")
		for _, item := range items(v) {
			if !isText(item) || choices != nil && !choices[text(item)] {
				return "has an item that is none of the choices"
			}
		}
	}
	return ""
}

func unlikeString(s string, property value) string {
	n := float64(utf8.RuneCountInString(s))
	choices := choicesOf(property, "enum", "oneOf")
	switch format := text(property, "format"); {
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
func choicesOf(v value, texts, objects string) map[string]bool {
	if !isArray(member(v, texts)) && !isArray(member(v, objects)) {
		return nil
	}
	choices := map[string]bool{}
	for _, item := range items(v, texts) {
		choices[text(item)] = true
	}
	for _, item := range items(v, objects) {
		choices[text(item, "const")] = true
	}
	return choices
}

// bound is a number in a schema, otherwise where there is none.
func bound(v value, name string, otherwise float64) float64 {
	if n, ok := decimal(member(v, name)); ok {
		return n
	}
	return otherwise
}
