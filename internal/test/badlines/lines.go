package badlines

import "strings"

// A Line is a line that no peer should send, with the answer that it must get.
type Line struct {
	Name string
	Text string
	ID   string // of the answer, as JSON; "" when it must not be answered
	Code int    // of the error that is the answer; 0 when it is a result
}

// Lines returns lines derived from a request that the side under test serves: its method, and the members of its
// parameters, of which there must be at least one.
func Lines(method, members string) []Line {
	r := strings.NewReplacer("METHOD", method, "MEMBERS", members)
	var out []Line
	for _, group := range [][]Line{ids(), texts(), envelopes(), silent()} {
		for _, line := range group {
			line.Text = r.Replace(line.Text)
			out = append(out, line)
		}
	}
	return out
}

const served = `{"jsonrpc":"2.0","id":"r","method":"METHOD","params":{MEMBERS}}`

// with returns the request with text inserted before its last brace.
func with(more string) string { return strings.TrimSuffix(served, "}") + more + "}" }

// nested wraps a text in n arrays.
func nested(n int, what string) string {
	return strings.Repeat("[", n) + what + strings.Repeat("]", n)
}

// ids returns requests with ids of every form.
func ids() []Line {
	long := `"` + strings.Repeat("i", 100_000) + `"`
	digits := strings.Repeat("1234567890", 100)
	var out []Line
	for _, id := range []struct{ name, text string }{
		{"0", "0"},
		{"-1", "-1"},
		{"-0", "-0"},
		{"2^53+1", "9007199254740993"},
		{"the largest int64", "9223372036854775807"},
		{"the smallest int64", "-9223372036854775808"},
		{"the largest uint64", "18446744073709551615"},
		{"a fraction", "1.5"},
		{"a zero fraction", "1.0"},
		{"an exponent", "1e2"},
		{"more than a float64 holds", "1E400"},
		{"nearly nothing", "1e-400"},
		{"1,000 digits", digits},
		{"the empty string", `""`},
		{"a number as a string", `"1"`},
		{"100,000 characters", long},
		{"NUL", `"\u0000"`},
		{"a pair of surrogates", `"\ud83d\ude00"`},
		{"a lone surrogate", `"\ud800"`},
		{"the other half alone", `"x\udfff"`},
		{"U+FFFD", `"\ufffd"`},
		{"line separators", "\"\u2028\u2029\""},
		{"a byte order mark", "\"\ufeff\""},
		{"quote and backslash", `"\"\\\/"`},
		{"null", "null"},
	} {
		out = append(out, Line{"id: " + id.name, strings.Replace(served, `"r"`, id.text, 1), id.text, 0})
	}
	for _, id := range []string{`{}`, `[]`, `[1]`, `true`, `false`} {
		out = append(out, Line{"id: " + id, strings.Replace(served, `"r"`, id, 1), "null", InvalidRequest})
	}
	return out
}

// texts returns requests in unusual or slightly invalid JSON.
func texts() []Line {
	fine := func(name, text string) Line { return Line{name, text, `"r"`, 0} }
	bad := func(name, text string) Line { return Line{name, text, "null", ParseError} }
	return []Line{
		fine("CRLF", served+"\r"),
		fine("white space around", " \t"+served+" \t\r"),
		fine("white space inside", strings.NewReplacer(`,"`, " ,\t\"", `":`, "\" :\r ").Replace(served)),
		fine("names with escapes", strings.NewReplacer(`"id"`, `"\u0069d"`, `"method"`, `"m\u0065thod"`).Replace(served)),
		fine("a version with escapes", strings.Replace(served, "2.0", `2\u002e0`, 1)),
		fine("NUL as an escape", with(`,"x":"\u0000"`)),
		fine("lone surrogates", with(`,"x":"\ud800","\udc00":1`)),
		fine("noncharacters", with(",\"x\":\"\uffff\U0010ffff\"")),
		fine("a huge number", with(`,"x":1e999999999`)),
		fine("a number of 100,000 digits", with(`,"x":`+strings.Repeat("9", 100_000))),
		fine("as deep as allowed", with(`,"x":`+nested(255, "0"))),
		fine("1,000 unknown members", with(strings.Repeat(`,"x":0`, 1000))),
		fine("members of another case", with(`,"ID":2,"Method":"x","PARAMS":[],"Jsonrpc":1,"Result":0,"ERROR":0`)),
		fine("an unknown member twice", with(`,"x":1,"x":2`)),
		fine("an empty name", with(`,"":{"":[]}`)),
		fine("__proto__", with(`,"__proto__":{"id":5}`)),

		bad("a byte order mark", "\ufeff"+served),
		bad("a byte order mark of UTF-16", "\xff\xfe"+served),
		bad("NUL before", "\x00"+served),
		bad("NUL behind", served+"\x00"),
		bad("NUL in a string", with(",\"x\":\"\x00\"")),
		bad("a tab in a string", with(",\"x\":\"\t\"")),
		bad("DEL between members", with("\x7f")),
		bad("a no-break space", with(",\u00a0\"x\":1")),
		bad("a vertical tab", served+"\v"),
		bad("invalid UTF-8", with(",\"x\":\"\xff\"")),
		bad("invalid UTF-8 in a name", with(",\"\xff\":1")),
		bad("overlong UTF-8", with(",\"x\":\"\xc0\xaf\"")),
		bad("a surrogate in UTF-8", with(",\"x\":\"\xed\xa0\x80\"")),
		bad("UTF-8 that is cut off", with(",\"x\":\"\xe2\x82\"")),
		bad("beyond Unicode", with(",\"x\":\"\xf4\x90\x80\x80\"")),
		bad("cut off", served[:len(served)-1]),
		bad("cut off in a string", served[:len(served)/2]),
		bad("a brace only", "{"),
		bad("a quote only", `"`),
		bad("a brace too many", served+"}"),
		bad("two messages", served+served),
		bad("two messages with a comma", served+","+served),
		bad("a trailing comma", with(",")),
		bad("two commas", with(`,,"x":1`)),
		bad("no colon", with(`,"x"1`)),
		bad("no value", with(`,"x":`)),
		bad("no name", with(`,:1`)),
		bad("a name without quotes", with(`,x:1`)),
		bad("single quotes", with(`,'x':1`)),
		bad("a comment", with(` /* x */`)),
		bad("NaN", with(`,"x":NaN`)),
		bad("Infinity", with(`,"x":-Infinity`)),
		bad("undefined", with(`,"x":undefined`)),
		bad("True", with(`,"x":True`)),
		bad("a leading zero", with(`,"x":01`)),
		bad("a plus", with(`,"x":+1`)),
		bad("a hexadecimal number", with(`,"x":0x1`)),
		bad("a point without digits", with(`,"x":1.`)),
		bad("an exponent without digits", with(`,"x":1e`)),
		bad("a minus only", with(`,"x":-`)),
		bad("a bad escape", with(`,"x":"\x41"`)),
		bad("an escape cut off", with(`,"x":"\u12"`)),
		bad("no JSON", "npm notice: new version"),
		bad("HTTP", "POST / HTTP/1.1\r"),
		bad("a header", "Content-Length: 42\r"),
		bad("a closing bracket", "]"),
	}
}

// envelopes returns lines that are JSON but not messages.
func envelopes() []Line {
	bad := func(name, text string) Line { return Line{name, text, "null", InvalidRequest} }
	known := func(name, text string) Line { return Line{name, text, `"r"`, InvalidRequest} }
	return []Line{
		bad("a batch", "["+served+"]"),
		bad("an empty batch", "[]"),
		bad("a string", `"x"`),
		bad("a number", "42"),
		bad("null", "null"),
		bad("true", "true"),
		bad("an empty object", "{}"),
		bad("a depth bomb", strings.Repeat("[", 1_000_000)),
		bad("a depth bomb of objects", strings.Repeat(`{"x":`, 100_000)),
		known("a depth bomb in a request", with(`,"x":`+strings.Repeat("[", 1_000_000))),
		known("one level too deep", with(`,"x":`+nested(256, "0"))),
		bad("a depth bomb before the id", `{"jsonrpc":"2.0","x":`+nested(100_000, "")+`,"method":"METHOD","params":{},"id":"r","y":0}`),
		known("no version", `{"id":"r","method":"METHOD","params":{MEMBERS}}`),
		known("version 1.0", strings.Replace(served, "2.0", "1.0", 1)),
		known("a version that is a number", strings.Replace(served, `"2.0"`, "2.0", 1)),
		known("a version that is null", strings.Replace(served, `"2.0"`, "null", 1)),
		known("a version with more behind", strings.Replace(served, "2.0", `2.0\u0000`, 1)),
		known("neither method nor result", `{"jsonrpc":"2.0","id":"r"}`),
		known("a method that is a number", strings.Replace(served, `"METHOD"`, "1", 1)),
		known("a method that is null", strings.Replace(served, `"METHOD"`, "null", 1)),
		known("a method that is an array", strings.Replace(served, `"METHOD"`, `["METHOD"]`, 1)),
		known("method and result", with(`,"result":{}`)),
		known("method and error", with(`,"error":{"code":1,"message":"x"}`)),
		known("the id twice", `{"jsonrpc":"2.0","id":1,"id":"r","method":"METHOD","params":{MEMBERS}}`),
		known("the method twice", with(`,"method":"METHOD"`)),
		known("the version twice", with(`,"jsonrpc":"2.0"`)),
		known("the parameters twice", with(`,"params":{}`)),
		known("the method twice, once with escapes", with(`,"m\u0065thod":"x"`)),
		bad("an id of another case, and nothing else", `{"jsonrpc":"2.0","ID":"r","Method":"METHOD"}`),
		bad("a notification of another version", `{"jsonrpc":"1.0","method":"METHOD"}`),
	}
}

// silent returns lines that must not be answered, because otherwise two peers could answer each other forever.
func silent() []Line {
	none := func(name, text string) Line { return Line{name, text, "", 0} }
	return []Line{
		none("a result to no request", `{"jsonrpc":"2.0","id":99,"result":{}}`),
		none("a result with a strange id", `{"jsonrpc":"2.0","id":{},"result":{}}`),
		none("a result without id", `{"jsonrpc":"2.0","result":{}}`),
		none("a result without version", `{"id":99,"result":{}}`),
		none("an error to no request", `{"jsonrpc":"2.0","id":99,"error":{"code":-32601,"message":"x"}}`),
		none("an error without id", `{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}`),
		none("an error with id null", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`),
		none("an error that is none", `{"jsonrpc":"2.0","id":99,"error":"oops"}`),
		none("an error whose code is huge", `{"jsonrpc":"2.0","id":null,"error":{"code":1e999,"message":{}}}`),
		none("result and error", `{"jsonrpc":"2.0","id":99,"result":1,"error":{"code":1,"message":"x"}}`),
		none("a result twice", `{"jsonrpc":"2.0","id":99,"result":1,"result":2}`),
		none("a result beside a method that is null", `{"jsonrpc":"2.0","id":99,"method":null,"result":1}`),
		none("a result that is not JSON", `{"jsonrpc":"2.0","id":99,"result":{"x":01}}`),
		none("a result that is cut off", `{"jsonrpc":"2.0","id":99,"result":{"x":`),
		none("an error with invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":99,\"error\":{\"code\":1,\"message\":\"\xff\"}}"),
		none("a result that is too deep", `{"jsonrpc":"2.0","id":99,"result":`+strings.Repeat("[", 100_000)),
		none("an unknown notification", `{"jsonrpc":"2.0","method":"nobody/knows","params":{"x":1}}`),
		none("an unknown notification of the protocol", `{"jsonrpc":"2.0","method":"$/nobody"}`),
		none("a notification without name", `{"jsonrpc":"2.0","method":""}`),
		none("a cancellation of nothing", `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"nobody"}}`),
		none("a cancellation without id", `{"jsonrpc":"2.0","method":"$/cancel_request"}`),
		none("a cancellation with a strange id", `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":[]}}`),
		none("a cancellation of two ids", `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1,"requestId":2}}`),
		none("a blank line", ""),
		none("white space", " \t\r"),
	}
}
