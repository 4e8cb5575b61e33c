// Only this file imports the library, github.com/sourcegraph/jsonrpc2. The library keeps track of the calls that wait
// for a response, sends them one at a time, and closes the waiting calls and the stream, once. It sees no payload;
// messages for which it has nothing to correlate do not pass through it.

package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sourcegraph/jsonrpc2"
)

// library is the library as the connection sees it.
type library struct {
	conn    *jsonrpc2.Conn
	started chan struct{} // closed by run

	sending       sync.Mutex
	request       *Call  // the call that conn is about to write; guarded by sending
	lastID        uint64 // the last id used; guarded by sending
	lastLibraryID uint64 // guarded by sending

	// The library cannot give up a call. Instead, the next call takes the id, and thus the place, of one that was given
	// up; or the library gets a response to it, which is not possible while its reader waits for the peer.
	mu      sync.Mutex
	givenUp []uint64    // ids of calls that conn keeps although no one waits for them
	some    atomic.Bool // there are some; saves the reader the lock

	// Owned by the reader: how conn learns that a call is over. conn's messages have an unexported type that only JSON
	// can fill, which takes about 25 allocations and 4 µs. Therefore the first message, a response with only an id, is
	// kept, and assigned to the later ones after changing the id in its response: that response is passed to conn's
	// OnRecv hook, and is not read after the hook has run. If this stops working in another release of the library,
	// received notices, and JSON fills all messages.
	libraryID uint64             // the last call passed to conn
	response  *jsonrpc2.Response // the response in message; nil before the first
	message   reflect.Value      // the message that is kept
	off       bool               // keeping it does not work
}

// libraryUser is what the library needs from the connection.
type libraryUser interface {
	// next returns the library's id of the next call that is over, or the reason why there will be none. The library's
	// reader calls it.
	next() (libraryID uint64, err error)
	// writeRequest writes a request.
	writeRequest(*Call) error
	// closeStream is called once.
	closeStream() error
}

// newLibrary starts the library, which does not read before run.
func newLibrary(user libraryUser, log *slog.Logger) *library {
	l := &library{started: make(chan struct{})}
	// It starts reading at once, before l.conn is set.
	l.conn = jsonrpc2.NewConn(context.Background(), &objectStream{l: l, user: user}, noRequests{},
		jsonrpc2.OnRecv(l.received), jsonrpc2.SetLogger(libraryLog{log}))
	return l
}

func (l *library) run() { close(l.started) }

// done is closed when the connection is over.
func (l *library) done() <-chan struct{} { return l.conn.DisconnectNotify() }

// close closes the stream. If it has been closed before, closed is false.
func (l *library) close() (closed bool, err error) {
	err = l.conn.Close()
	if errors.Is(err, jsonrpc2.ErrClosed) {
		return false, nil
	}
	return true, err
}

// waiter waits for the end of a call.
type waiter struct{ of jsonrpc2.Waiter }

// send gives a call its id and sends it.
func (l *library) send(ctx context.Context, call *Call) error {
	l.sending.Lock()
	defer l.sending.Unlock()
	l.lastID++
	call.id, l.request = l.lastID, call
	var ok bool
	if call.libraryID, ok = l.takeGivenUp(); !ok {
		l.lastLibraryID++
		call.libraryID = l.lastLibraryID
	}
	var err error
	call.waiter.of, err = l.conn.DispatchCall(ctx, call.method, nil, jsonrpc2.PickID(jsonrpc2.ID{Num: call.libraryID}))
	l.request = nil // its parameters may be long
	if err != nil {
		l.giveUp(call.libraryID) // the library keeps it nevertheless
	}
	return translateClosed(err)
}

// giveUp records that no one waits for a call.
func (l *library) giveUp(libraryID uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.givenUp = append(l.givenUp, libraryID)
	l.some.Store(true)
}

// takeGivenUp returns the library's id of a call that was given up, if there is one.
func (l *library) takeGivenUp() (libraryID uint64, ok bool) {
	if !l.some.Load() {
		return 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.givenUp) - 1
	if n < 0 {
		return 0, false
	}
	libraryID = l.givenUp[n]
	l.givenUp = l.givenUp[:n]
	l.some.Store(n > 0)
	return libraryID, true
}

// wait returns nil when the call is over, ctx.Err() if ctx ends first, or ErrClosed.
func (w *waiter) wait(ctx context.Context) error { return translateClosed(w.of.Wait(ctx, nil)) }

// translateClosed converts the library's error for a closed connection to ErrClosed, and returns other errors
// unchanged.
func translateClosed(err error) error {
	if errors.Is(err, jsonrpc2.ErrClosed) {
		return ErrClosed
	}
	return err
}

// objectStream is the connection as the library sees it.
type objectStream struct {
	l     *library
	user  libraryUser
	begun bool // owned by the reader
}

// ReadObject passes the library its next message, which is the response to a call of this side.
func (s *objectStream) ReadObject(v any) error {
	if !s.begun {
		<-s.l.started
		s.begun = true
	}
	libraryID, ok := s.l.takeGivenUp()
	if !ok {
		var err error
		if libraryID, err = s.user.next(); err != nil {
			return err
		}
	}
	s.l.libraryID = libraryID
	return s.l.fill(v)
}

// WriteObject writes the only kind of message that the library sends, which send has prepared.
func (s *objectStream) WriteObject(any) error { return s.user.writeRequest(s.l.request) }

// Close is called by the library, once.
func (s *objectStream) Close() error { return s.user.closeStream() }

// fill fills the library's message with the response to the call l.libraryID.
func (l *library) fill(message any) error {
	v := reflect.Indirect(reflect.ValueOf(message))
	if l.response != nil && v.CanSet() && v.Type() == l.message.Type() {
		l.response.ID.Num = l.libraryID
		v.Set(l.message)
		return nil
	}
	text := strconv.AppendUint([]byte(`{"jsonrpc":"2.0","result":null,"id":`), l.libraryID, 10)
	if err := message.(json.Unmarshaler).UnmarshalJSON(append(text, '}')); err != nil {
		return err
	}
	l.message = reflect.New(v.Type()).Elem()
	l.message.Set(v)
	return nil
}

// received is the library's OnRecv hook, which its reader calls for each response. A response that differs from the one
// that fill passed is sent again.
func (l *library) received(_ *jsonrpc2.Request, response *jsonrpc2.Response) {
	if response.ID.Num != l.libraryID {
		l.response, l.off = nil, true
		l.giveUp(l.libraryID)
		return
	}
	if !l.off {
		l.response = response
	}
}

// noRequests is the library's handler of requests, of which it receives none.
type noRequests struct{}

func (noRequests) Handle(context.Context, *jsonrpc2.Conn, *jsonrpc2.Request) {}

// libraryLog passes on the library's log messages.
type libraryLog struct{ log *slog.Logger }

func (l libraryLog) Printf(format string, args ...any) {
	l.log.Debug(strings.TrimSpace(fmt.Sprintf(format, args...)))
}
