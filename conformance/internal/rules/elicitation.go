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
	{ID: "ELI-5", On: requests(judge.MethodElicit), Check: func(e *judge.Event) {
		if mode := e.Text("mode"); mode == "form" || mode == "url" {
			e.Needs(&e.Client, "elicitation."+mode)
		}
	}},
	{ID: "ELI-11", On: requests(judge.MethodElicit), Check: func(e *judge.Event) {
		for name, property := range e.Content.Members("requestedSchema", "properties") {
			free := property.Text("type") == "string" && !property.Given("enum") && !property.Given("oneOf")
			if free && (asksForSecret(name) || asksForSecret(property.Text("title"))) {
				e.Broken(schema.Pointer("/requestedSchema/properties", name),
					"the form asks for a secret; use the mode url instead").Mildly(finding.Should)
			}
		}
	}},
	{ID: "ELI-15", On: results(judge.MethodElicit), Check: func(e *judge.Event) {
		form := e.Request.Params.Member("requestedSchema")
		if e.Text("action") != "accept" || e.Request.Params.Text("mode") != "form" || !form.IsObject() ||
			!e.Sound("/content") {
			return
		}
		// The loop is over the form, which is small, so that the content is read only once.
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
			e.Broken("/content", "the required member %q is missing", finding.Clip(name)).Because(e.Request.At, "the form")
		}
	}},
	{ID: "ELI-19", On: requests(judge.MethodElicit), Check: func(e *judge.Event) {
		id := e.Text("elicitationId")
		if before, ok := e.Elicitations.Get(id); ok && id != "" && !before.Over && before.Completed == nil {
			e.Broken("/elicitationId", "the id %q already belongs to an outstanding elicitation", finding.Clip(id)).
				Because(before.At, "the elicitation with this id")
		}
	}},
	{ID: "ELI-21", On: notifications(judge.MethodElicitComplete), Check: func(e *judge.Event) {
		id := e.Text("elicitationId")
		if _, ok := e.Elicitations.Get(id); !ok && id != "" && !e.Elicitations.Forgot && !e.HasOlderSessions() {
			e.Broken("/elicitationId", "there was no elicitation with the id %q", finding.Clip(id))
		}
	}},
	{ID: "ELI-23", On: answers(judge.MethodElicit), Check: func(e *judge.Event) {
		mode := e.Request.Params.Text("mode")
		code, _ := e.Content.Integer("code")
		none := !e.Client.Can("elicitation.form") && !e.Client.Can("elicitation.url")
		switch {
		case e.Sender() != finding.Client || mode != "form" && mode != "url" || e.Client.Can("elicitation."+mode):
		case e.Kind == finding.ErrorReply && (code == codeParams || code == codeCancelled || code == codeMethod && none):
		default:
			e.Broken("", "the client does not advertise the mode %s, so it must answer with the error code %d", mode,
				codeParams).
				Because(e.Client.At, "its capabilities").Because(e.Request.At, "the request")
		}
	}},
	{ID: "ELI-25", On: requests(judge.MethodElicit), Check: func(e *judge.Event) {
		u := elicitedURL(e)
		if u == nil {
			return
		}
		if _, password := u.User.Password(); password {
			e.Broken("/url", "the URL has a password before its host")
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
					e.Broken("/url", "the URL has the parameter %q, which is a credential", finding.Clip(name))
					return
				case likelyCredentials[name]:
					e.Broken("/url", "the URL has the parameter %q, which may be a credential or personal data", finding.Clip(name)).
						Mildly(finding.Should)
					return
				}
			}
		}
	}},
	{ID: "ELI-26", On: requests(judge.MethodElicit), Check: func(e *judge.Event) {
		u := elicitedURL(e)
		if u != nil && !strings.EqualFold(u.Scheme, "https") &&
			!(strings.EqualFold(u.Scheme, "http") && isDevelopmentHost(u.Hostname())) {
			e.Broken("/url", "the URL's scheme is not https")
		}
	}},
	{ID: "ELI-27", On: requests(judge.MethodElicit), Check: func(e *judge.Event) {
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
	}},
	{ID: "ELI-34", On: requests(judge.MethodElicit), Check: func(e *judge.Event) {
		if e.Given("sessionId") && e.Has("requestId") {
			e.Broken("/requestId", "an elicitation has either a sessionId or a requestId, not both")
		}
	}},
}

// unstyled returns a name without the differences between naming styles.
func unstyled(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' || unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// credentials has the names of parameters that hold a credential, likelyCredentials those of parameters that may hold
// one.
var (
	credentials = stringSet("password", "passwd", "pwd", "secret", "clientsecret", "apikey", "apisecret", "accesstoken",
		"refreshtoken",
		"idtoken", "authtoken", "bearertoken", "sessiontoken", "privatekey", "authorization")
	likelyCredentials = stringSet("token", "key", "auth", "sig", "signature", "email", "username", "ssn")
)

// secretNames has the names of fields that ask for a secret, secretParts parts of such names.
var (
	secretNames = stringSet("secret", "token", "pin", "otp", "cvv", "cvc", "pwd", "ssn")
	secretParts = []string{"password", "passwd", "passphrase", "passcode", "apikey", "secretkey", "clientsecret",
		"accesstoken",
		"authtoken", "bearertoken", "refreshtoken", "privatekey", "credential", "securitycode", "creditcard", "cardnumber"}
)

// asksForSecret reports whether a field with this name or title asks for a secret itself, not for the name of one or a
// question about one.
func asksForSecret(name string) bool {
	if len(name) > finding.MaxText || strings.HasSuffix(name, "?") {
		return false
	}
	name = unstyled(name)
	if secretNames[name] {
		return true
	}
	for _, about := range []string{"name", "policy", "length", "path", "file", "manager", "hint", "url", "variable",
		"id"} {
		if strings.HasSuffix(name, about) {
			return false
		}
	}
	return slices.ContainsFunc(secretParts, func(part string) bool { return strings.Contains(name, part) })
}

func stringSet(names ...string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}

// elicitedURL returns the URL of an elicitation of mode url, or nil if it has no valid one.
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

// isDevelopmentHost reports whether a host is this machine or on a local or private network.
func isDevelopmentHost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, suffix := range []string{"localhost", ".local", ".test", ".internal"} {
		if host == suffix || strings.HasSuffix(host, "."+strings.TrimPrefix(suffix, ".")) {
			return true
		}
	}
	address, err := netip.ParseAddr(host)
	return err == nil && (address.IsLoopback() || address.IsPrivate() || address.IsLinkLocalUnicast() ||
		address.IsUnspecified())
}

var clickable = regexp.MustCompile(`(?i)\bhttps?://\S`)

// requireNoURL reports URLs in the named members of an object, which are shown to the user.
func requireNoURL(e *judge.Event, where string, v *schema.Value, names ...string) {
	for _, name := range names {
		if clickable.MatchString(v.Text(name)) {
			e.Broken(where+"/"+name, "the form shows a URL")
		}
	}
}

// mismatch returns the reason why a form's property does not allow a value, or "" if it does. It does not judge
// patterns and formats whose meaning depends on the implementation.
func mismatch(v, property *schema.Value) string {
	switch property.Text("type") {
	case "string":
		if !v.IsText() {
			return "is not a string"
		}
		return stringMismatch(v.Text(), property)
	case "boolean":
		if !v.IsBoolean() {
			return "is not a boolean"
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
				return "has an item that is not one of the choices"
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
		return "is not one of the choices"
	case n < bound(property, "minLength", 0):
		return "is too short"
	case n > bound(property, "maxLength", math.Inf(1)):
		return "is too long"
	case format == "email" && !strings.Contains(s, "@"):
		return "is not an email address"
	case format == "date":
		if _, err := time.Parse(time.DateOnly, s); err != nil {
			return "is not a date"
		}
	}
	return ""
}

// choicesOf returns the choices in two lists, one of strings and one of objects with a const, or nil if both are
// absent.
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

// bound returns a number in a schema, or otherwise if it is absent.
func bound(v *schema.Value, name string, otherwise float64) float64 {
	if n, ok := v.Member(name).Decimal(); ok {
		return n
	}
	return otherwise
}
