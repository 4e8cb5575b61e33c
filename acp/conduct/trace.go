package conduct

import (
	"strconv"
	"time"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// traceMessage notes a request or notification. Envelopes are not shown: from and to are the ends of a hop, and a
// message of the Model Context Protocol is shown as what it is.
func (c *chain) traceMessage(p *port, out *outgoing, sent *call) {
	kind, protocol, method, params := "notification", "acp", out.method, out.params
	if sent != nil {
		kind = "request"
	}
	if string(method) == "mcp/message" {
		if inner := c.member(params, "method"); inner != nil && inner[0] == '"' {
			protocol, method = "mcp", []byte(codec.NewDecoder(inner).Str())
			params = c.member(params, "params")
		}
	}
	b := c.beginEvent(kind)
	b = append(b, `,"protocol":"`+protocol+`"`...)
	between := [2]string{p.place, out.to.place}
	switch {
	case out.wrapped && p == c.client():
		between[0] = "successor"
	case out.wrapped && out.to == c.client():
		between[1] = "successor"
	}
	b = appendHop(b, between[0], between[1])
	if sent != nil {
		sent.between = between
		b = strconv.AppendInt(append(b, `,"id":`...), sent.n, 10)
	}
	b = codec.AppendString(append(b, `,"method":`...), string(method))
	if session := c.member(out.params, "sessionId"); session != nil && session[0] == '"' {
		b = append(append(b, `,"session":`...), session...)
	}
	if params == nil {
		params = []byte("null")
	}
	b = wire.AppendLine(append(b, `,"params":`...), params)
	c.trace = append(b, '}', '\n')
}

// traceResponse notes an answer: the result, or the error of line.
func (c *chain) traceResponse(call *call, result, line []byte) {
	b := c.beginEvent("response")
	b = appendHop(b, call.between[1], call.between[0])
	b = strconv.AppendInt(append(b, `,"id":`...), call.n, 10)
	b = strconv.AppendBool(append(b, `,"is_error":`...), result == nil)
	if result == nil {
		if result = c.member(line, "error"); result == nil {
			result = []byte("null")
		}
	}
	b = wire.AppendLine(append(b, `,"payload":`...), result)
	c.trace = append(b, '}', '\n')
}

// traceDropped notes an answer that matches no request. Its id is 0 if it is none of the conductor's.
func (c *chain) traceDropped(p *port, m *wire.Message, line []byte) {
	c.traceResponse(&call{n: number(m.ID), between: [2]string{"conductor", p.place}}, m.Result, line)
}

func (c *chain) beginEvent(kind string) []byte {
	b := append(c.trace, `{"type":"`+kind+`","ts":`...)
	return strconv.AppendFloat(b, time.Since(c.began).Seconds(), 'f', 6, 64)
}

func appendHop(b []byte, from, to string) []byte {
	return append(b, `,"from":"`+from+`","to":"`+to+`"`...)
}

func (c *chain) writeTrace() {
	if len(c.trace) == 0 || c.options.Trace == nil {
		return
	}
	if _, err := c.options.Trace.Write(c.trace); err != nil {
		c.log.Warn("the trace is not complete", "error", err)
		c.options.Trace = nil
	}
	if c.trace = c.trace[:0]; cap(c.trace) > soft {
		c.trace = nil
	}
}
