package wire

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/fastpath"
)

// Error is a JSON-RPC error object.
type Error struct {
	Code    int
	Message string
	Data    json.RawMessage
}

// Error implements the error interface.
func (e *Error) Error() string { return e.Message }

const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeInternal       = -32603
)

type kind uint8

const (
	kindInvalid kind = iota // answer with failure and id
	kindRequest
	kindNotification
	kindResponse
)

// envelope is one message, as slices of its line.
type envelope struct {
	kind    kind
	id      ID
	idAt    int // where the id begins in the line
	idEnd   int
	method  []byte
	params  []byte // nil if absent
	result  []byte
	failure *Error // kindInvalid: the answer; kindResponse: the peer's error
	broken  error  // kindResponse: what is wrong with it
	null    string // a member that is null and was read as absent, or ""
	unread  bool   // kindInvalid: it could not be read to its end
	bare    bool   // kindInvalid: it has an id but no method, result or error
}

const (
	memberVersion = iota
	memberID
	memberMethod
	memberParams
	memberResult
	memberError
)

var (
	errBoth    = errors.New("result and error in one response")
	errNeither = errors.New("neither result nor error")
	errVersion = errors.New(`jsonrpc is not "2.0"`)
	errTwice   = errors.New("a member of the envelope occurs twice")
	errTwiceIn = errors.New("a member of the error object occurs twice")
)

// usual is a message that begins as most peers begin theirs. The rest has not been read yet: if it turns out to be the
// value of the last member, the message is read only once; parse reads it twice.
type usual struct {
	kind   kind   // not kindInvalid
	id     int64  // of a request or response
	method []byte // for a request or notification
	rest   []byte // the rest, from the parameters or the result on
}

const (
	beforeNotification = `{"jsonrpc":"2.0","method":"`
	beforeID           = `{"jsonrpc":"2.0","id":`
	beforeMethod       = `,"method":"`
	beforeParams       = `","params":`
	beforeResult       = `,"result":`
)

// begin splits a message that begins in the usual way.
func begin(line []byte) (u usual, ok bool) {
	if !fastpath.Enabled {
		return u, false
	}
	u.kind = kindNotification
	rest, ok := bytes.CutPrefix(line, []byte(beforeNotification))
	if !ok {
		if rest, ok = bytes.CutPrefix(line, []byte(beforeID)); !ok {
			return u, false
		}
		if u.id, rest, ok = usualID(rest); !ok {
			return u, false
		}
		if u.rest, ok = bytes.CutPrefix(rest, []byte(beforeResult)); ok {
			u.kind = kindResponse
			return u, true
		}
		u.kind = kindRequest
		if rest, ok = bytes.CutPrefix(rest, []byte(beforeMethod)); !ok {
			return u, false
		}
	}
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return u, false
	}
	u.method = rest[:end]
	u.rest, ok = bytes.CutPrefix(rest[end:], []byte(beforeParams))
	return u, ok && bytes.IndexByte(u.method, '\\') < 0
}

// usualID reads an id with few digits.
func usualID(s []byte) (id int64, rest []byte, ok bool) {
	n := 0
	for n < len(s) && n < 18 && '0' <= s[n] && s[n] <= '9' {
		id = 10*id + int64(s[n]-'0')
		n++
	}
	return id, s[n:], n > 0 && (s[0] != '0' || n == 1)
}

// parse reads the envelope of line with d and checks that all of the line is JSON. The envelope refers
// to line, and is valid for as long as line is.
func parse(d *codec.Decoder, line []byte) envelope {
	var env envelope
	d.Reset(line)
	if d.Kind() != '{' {
		d.Skip()
		if err := d.End(); err != nil {
			return unread(err)
		}
		if d.Reset(line); d.Kind() == '[' {
			return invalid(codeInvalidRequest, "Invalid request: batches are not part of ACP", nil)
		}
		return invalid(codeInvalidRequest, "Invalid request: a message is a JSON object", nil)
	}

	var version, hasID, badID, hasMethod, hasResult, hasError, nullResult, nullError, duplicate bool
	var seen [memberError + 1]bool
	var badError error
	once := func(member int) {
		duplicate = duplicate || seen[member]
		seen[member] = true
	}
	for o := d.Object(); o.Next(); {
		switch string(o.Name()) {
		case "jsonrpc":
			once(memberVersion)
			raw := skipped(d)
			version = string(raw) == `"2.0"` || codec.NewDecoder(raw).Str() == "2.0" // in case it has escape sequences
		case "id":
			once(memberID)
			hasID = true
			switch d.Kind() {
			case '"', '0', 'n':
				env.idAt = d.Offset()
				env.id.DecodeJSON(d)
				env.idEnd = d.Offset()
			default:
				badID = true
				d.Skip()
			}
		case "method":
			once(memberMethod)
			env.method = nil
			kind := d.Kind()
			hasMethod = kind != 'n' // some peers write null in responses
			if kind == '"' {
				env.method = unquote(d)
			} else {
				d.Skip()
			}
		case "params":
			once(memberParams)
			env.params = skipped(d)
		case "result":
			once(memberResult)
			hasResult, nullResult = true, d.Kind() == 'n'
			env.result = skipped(d)
		case "error":
			once(memberError)
			hasError, nullError = true, d.Kind() == 'n'
			env.failure, badError = decodeError(d)
		default:
			d.Skip()
		}
	}
	if err := d.End(); err != nil {
		return unread(err)
	}

	// Some peers always write both members.
	if nullError && (hasMethod || hasResult) {
		hasError, env.failure, badError, env.null = false, nil, nil, "error"
	}
	if nullResult && (hasMethod || hasError) {
		hasResult, env.result, env.null = false, nil, "result"
	}
	if !hasMethod && (hasResult || hasError) {
		env.kind = kindResponse
		switch {
		case !version:
			env.broken = errVersion
		case hasResult && hasError:
			env.broken = errBoth
		case duplicate:
			env.broken = errTwice
		default:
			env.broken = badError
		}
		return env
	}
	refuse := func(message string) envelope {
		bad := invalid(codeInvalidRequest, message, nil)
		if hasID && !badID {
			bad.id = env.id
		}
		return bad
	}
	switch {
	case duplicate:
		return refuse("Invalid request: " + errTwice.Error())
	case badID:
		return refuse("Invalid request: an id is a string, a number or null")
	case !hasMethod:
		bad := refuse("Invalid request: neither method nor result nor error")
		bad.bare = true
		return bad
	case env.method == nil:
		return refuse("Invalid request: method is not a string")
	case hasResult || hasError:
		return refuse("Invalid request: method beside result or error")
	case !version:
		return refuse(`Invalid request: jsonrpc is not "2.0"`)
	case hasID:
		env.kind = kindRequest
	default:
		env.kind = kindNotification
	}
	return env
}

func invalid(code int, message string, cause error) envelope {
	if cause != nil {
		// The cause refers to a position in the peer's own bytes, and reveals nothing of this side.
		message += ": " + cause.Error()
	}
	return envelope{kind: kindInvalid, failure: &Error{Code: code, Message: message}}
}

// unread is a line that could not be read to its end, because it is not JSON or exceeds a limit.
func unread(err error) envelope {
	var env envelope
	switch {
	case errors.Is(err, codec.ErrDepth):
		env = invalid(codeInvalidRequest, "Invalid request: nested too deeply", nil)
	case errors.Is(err, codec.ErrSyntax):
		env = invalid(codeParse, "Parse error", err)
	default:
		env = invalid(codeInvalidRequest, "Invalid request", err)
	}
	env.unread = true
	return env
}

// skipped skips the next value and returns its bytes.
func skipped(d *codec.Decoder) []byte {
	d.Kind() // moves on to the first byte of the value
	start := d.Offset()
	d.Skip()
	return d.Slice(start)
}

// unquote reads a string, without copying it if nothing is escaped.
func unquote(d *codec.Decoder) []byte {
	raw := skipped(d)
	if d.Err() != nil {
		return nil
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	return []byte(codec.NewDecoder(raw).Str())
}

// decodeError reads an error object; it replaces wrong parts, so that a call always ends. Repeated members are refused.
func decodeError(d *codec.Decoder) (e *Error, twice error) {
	raw := skipped(d)
	e = &Error{Code: codeInternal, Message: "malformed error object"}
	if d.Err() != nil {
		return e, nil
	}
	in := codec.NewDecoder(raw)
	if in.Kind() != '{' {
		e.Data = append(json.RawMessage(nil), raw...)
		return e, nil
	}
	var seen [3]bool
	once := func(member int) {
		if seen[member] {
			twice = errTwiceIn
		}
		seen[member] = true
	}
	for o := in.Object(); o.Next(); {
		switch string(o.Name()) {
		case "code":
			once(0)
			if n := in.Int(32); in.Err() == nil {
				e.Code = int(n)
			}
		case "message":
			once(1)
			if s := in.Str(); in.Err() == nil {
				e.Message = s
			}
		case "data":
			once(2)
			e.Data = in.Raw()
		default:
			in.Skip()
		}
	}
	if in.Err() != nil {
		e.Data = append(json.RawMessage(nil), raw...)
	}
	return e, twice
}

// Answers reports whether a connection would take a line for the response to the call with the given id, even if the
// line cannot be read, or has neither result nor error.
func Answers(line []byte, id ID) bool {
	env := parse(codec.NewDecoder(nil), line)
	if env.unread {
		got, response, known := RecoverID(ends(line))
		return response && known && sameCall(got, id)
	}
	return (env.kind == kindResponse || env.bare) && sameCall(env.id, id)
}

// sameCall reports whether a received id is that of a call.
func sameCall(got, id ID) bool {
	want, _ := callNumber(id)
	n, ours := callNumber(got)
	return got == id || ours && n == want
}

// ends returns the beginning and the end of a line.
func ends(line []byte) (head, tail []byte) {
	return line[:min(len(line), keepEnds)], line[max(0, len(line)-keepEnds):]
}

// Recover is RecoverID for a whole line that cannot be read.
func Recover(line []byte) (id ID, response, known bool) { return RecoverID(ends(line)) }

// RecoverID finds the id of a message of which only the beginning and the end are available, and reports whether it is
// a response.
func RecoverID(head, tail []byte) (id ID, response, ok bool) {
	d := codec.NewDecoder(head)
	for o := d.Object(); !response && o.Next(); {
		switch string(o.Name()) {
		case "id":
			id.DecodeJSON(d)
			ok = d.Err() == nil
		case "result", "error":
			response = true
		default:
			d.Skip()
		}
	}
	if ok {
		return id, response, true
	}
	at := len(tail)
	for range 2 { // its value may be "id" as well
		if at = bytes.LastIndex(tail[:at], []byte(`"id"`)); at < 0 {
			break
		}
		if id, ok = lastID(tail[at:]); ok {
			return id, response, true
		}
	}
	return ID{}, response, false
}

// lastID reads the id with which tail begins, if it is the last member of a message, or the last except the version.
func lastID(tail []byte) (id ID, ok bool) {
	d := codec.NewDecoder(append([]byte("{"), tail...))
	for o := d.Object(); o.Next(); {
		switch string(o.Name()) {
		case "id":
			o.Once(0)
			id.DecodeJSON(d)
		case "jsonrpc":
			d.Fixed(`"2.0"`)
		default:
			o.Refuse()
		}
	}
	if d.End() != nil || id.IsNull() {
		return ID{}, false
	}
	return id, true
}
