// This file has the server's side of streamable HTTP: the handling of POST, GET and DELETE. The connection itself is in
// server_link.go.

package remote

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

func (s *Server) post(w http.ResponseWriter, r *http.Request, principal string) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, "the content type is not application/json")
	}
	var c *httpLink
	if r.Header.Get(HeaderConnection) != "" {
		var err error
		if c, err = s.httpConnection(r, principal); err != nil {
			return err
		}
		if !c.enter() {
			return errGone
		}
		defer c.leave()
	}
	body, err := s.readBody(w, r)
	if err != nil {
		return err
	}
	m := wire.Parse(codec.NewDecoder(nil), body)
	if m.Kind == wire.KindInvalid {
		return rpcRefusal(http.StatusBadRequest, m.ID, m.Failure)
	}
	s.bytesIn.Add(uint64(len(body)))
	switch initialize := m.Kind == wire.KindRequest && string(m.Method) == methodInitialize; {
	case initialize && c != nil:
		return invalidRequest(m.ID, "the connection is initialized already")
	case initialize && m.ID.IsNull():
		return invalidRequest(m.ID, "the id of initialize is null")
	case initialize:
		return s.initialize(w, r, principal, m.ID, body)
	case c == nil:
		return refuse(http.StatusBadRequest, HeaderConnection+" is missing")
	}
	session, err := sessionOf(r, m)
	if err != nil {
		return err
	}
	if err := c.deliver(r.Context(), m, session, r.Header.Get(HeaderSession), body); err != nil {
		return err
	}
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func (s *Server) httpConnection(r *http.Request, principal string) (*httpLink, error) {
	id := r.Header.Get(HeaderConnection)
	if id == "" {
		return nil, refuse(http.StatusBadRequest, HeaderConnection+" is missing")
	}
	c := s.lookup(id, principal)
	if c == nil {
		return nil, errGone
	}
	l, ok := c.link.(*httpLink)
	if !ok {
		return nil, errGone
	}
	return l, nil
}

// readBody reads a message and joins it into one line.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > int64(s.opts.MaxMessage) {
		// If the connection is closed while the client is still writing, it does not see the response: read as much as
		// a message may have. Errors do not matter.
		_, _ = io.CopyN(io.Discard, r.Body, int64(s.opts.MaxMessage))
		return nil, refuse(http.StatusRequestEntityTooLarge, "the message is too long")
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(s.opts.MaxMessage)))
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case err == nil:
		return oneLine(text), nil
	case tooLarge:
		return nil, refuse(http.StatusRequestEntityTooLarge, "the message is too long")
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return nil, refuse(http.StatusRequestTimeout, "the message came too slowly")
	default:
		return nil, &refusal{http.StatusBadRequest, "the message could not be read", err}
	}
}

// sessionOf returns the session that a message is about, or "".
func sessionOf(r *http.Request, m wire.Message) (string, error) {
	named := r.Header.Get(HeaderSession)
	if m.Kind == wire.KindResponse {
		return named, nil
	}
	if strings.HasPrefix(string(m.Method), "$/") {
		return "", nil
	}
	session := string(wire.TextMember(codec.NewDecoder(nil), m.Params, memberSession))
	_, needsSession := answerFirst[string(m.Method)]
	switch {
	case len(session) > maxID:
		return "", invalidRequest(m.ID, "the session's id is too long")
	case session == "" && named == "" && needsSession:
		return "", refuse(http.StatusBadRequest, HeaderSession+" is missing")
	case session != "" && named != "" && session != named:
		return "", refuse(http.StatusBadRequest, HeaderSession+" is not the session of the message")
	case session == "":
		session = named
	}
	return session, nil
}

// initialize opens a connection and responds with the agent's answer.
func (s *Server) initialize(w http.ResponseWriter, r *http.Request, principal string, id wire.ID, body []byte) error {
	c, err := s.add(r, principal, HTTP)
	if err != nil {
		return err
	}
	l := newHTTPLink(c, id, body)
	l.enter()
	defer l.leave()
	c.register(l)
	go func() {
		defer c.remove()
		c.run()
	}()
	select {
	case <-l.out.initialized:
	case <-time.After(s.opts.InitializeTimeout):
		l.endInput(errInitialize)
		return refuse(http.StatusGatewayTimeout, "the agent did not answer")
	case <-r.Context().Done():
		l.endInput(errInitialize)
		return nil
	}
	if !l.out.refused {
		w.Header().Set(HeaderConnection, c.peer.ConnectionID)
	} else {
		l.endInput(errInitialize)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	if _, err := w.Write(l.out.answer); err != nil {
		l.endInput(errInitialize)
	}
	return nil
}

func (s *Server) delete(w http.ResponseWriter, r *http.Request, principal string) error {
	l, err := s.httpConnection(r, principal)
	if err != nil {
		return err
	}
	if !l.delete() {
		return errGone
	}
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// stream responds to a GET with the agent's messages.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, principal string) error {
	if !accepts(r.Header, "text/event-stream") {
		return refuse(http.StatusNotAcceptable, "the stream is text/event-stream, which Accept does not list")
	}
	l, err := s.httpConnection(r, principal)
	if err != nil {
		return err
	}
	if !l.enter() {
		return errGone
	}
	defer l.leave()
	out, rcv, err := l.out.attach(r.Context(), r.Header.Get(HeaderSession), r.Header.Get("Last-Event-ID"),
		http.NewResponseController(w))
	if err != nil {
		return err
	}
	s.streams.Add(1)
	defer s.streams.Add(-1)
	defer l.out.detach(out, rcv)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	ew := &eventWriter{w: w, rc: rcv.rc, stall: s.opts.StallTimeout}
	defer ew.rest()
	err = ew.begin(rcv.start)
	for err == nil {
		var more bool
		if more, err = l.out.send(r.Context(), out, rcv, ew); !more || err != nil {
			break
		}
		err = rcv.await(r.Context(), ew, s.opts.KeepAlive)
	}
	if err != nil && r.Context().Err() == nil && !errors.Is(err, errReplaced) {
		l.c.log.Debug("acp: a stream was lost", "session", out.session, "error", err)
	}
	return nil
}

// accepts reports whether Accept lists a type by its name.
func accepts(h http.Header, kind string) bool {
	for _, value := range h.Values("Accept") {
		for item := range strings.SplitSeq(value, ",") {
			name, params, err := mime.ParseMediaType(item)
			q, weighed := params["q"]
			if err == nil && name == kind && (!weighed || strings.Trim(q, "0.") != "") {
				return true
			}
		}
	}
	return false
}
