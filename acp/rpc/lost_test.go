package rpc

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
)

// lossy is a stream that loses every call of one method, and answers others.
type lossy struct {
	reads chan func() ([]byte, error)
}

func (s *lossy) Read() ([]byte, error) {
	if read, ok := <-s.reads; ok {
		return read()
	}
	return nil, io.EOF
}

var errLost = errors.New("lost")

func (s *lossy) Write(message []byte) error {
	line := string(message)
	id := IntID(1)
	if line != `{"jsonrpc":"2.0","id":1,"method":"_lost","params":{}}` {
		id = IntID(2)
		s.reads <- func() ([]byte, error) { return []byte(`{"jsonrpc":"2.0","id":2,"result":{"n":7}}`), nil }
		return nil
	}
	s.reads <- func() ([]byte, error) { return nil, &CallLostError{ID: IntID(99), Err: errors.New("nobody's")} }
	s.reads <- func() ([]byte, error) { return nil, &CallLostError{ID: id, Err: errLost} }
	return nil
}

func (s *lossy) Close() error { close(s.reads); return nil }

type lossyTransport struct{ stream Stream }

func (t lossyTransport) Connect(context.Context) (Stream, error) { return t.stream, nil }

// A stream that knows that a call will not be answered ends that call, with its own error, and nothing else; also when
// it is wrapped.
func TestCallLost(t *testing.T) {
	for name, wrap := range map[string]func(Stream) Stream{
		"plain":   func(s Stream) Stream { return s },
		"wrapped": func(s Stream) Stream { return Wrap(s, Wrapper{}) },
	} {
		t.Run(name, func(t *testing.T) {
			stream := wrap(&lossy{reads: make(chan func() ([]byte, error), 4)})
			c := must.Get(Connect(t.Context(), lossyTransport{stream}, nil, nil))(t)
			defer c.Close()
			_, err := Call[echoParams](t.Context(), c, "_lost", struct{}{})
			if !errors.Is(err, errLost) || err.Error() != "_lost: lost" {
				t.Errorf("got %v", err)
			}
			if _, ok := errors.AsType[*CallError](err); ok || errors.Is(err, ErrClosed) {
				t.Errorf("%v is the peer's answer, or the end of the connection", err)
			}
			res, err := Call[echoParams](t.Context(), c, "_other", struct{}{})
			if err != nil || res.N != 7 {
				t.Errorf("got %v, %v", res, err)
			}
		})
	}
}

func TestCallLostResponse(t *testing.T) {
	err := &CallLostError{ID: StringID("a\"b"), Err: errors.New("it's \"lost\"\n")}
	const want = `{"jsonrpc":"2.0","id":"a\"b","error":{"code":-32603,"message":"it's \"lost\"\n"}}`
	if got := string(err.Response()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
