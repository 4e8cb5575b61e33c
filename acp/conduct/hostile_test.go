package conduct_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/conduct"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
)

// A component that is slow to start blocks neither the others nor the end of the chain.
func TestSlowStart(t *testing.T) {
	begin := func(t *testing.T, connect transport) (client, proxy *end, ended chan error) {
		ours, theirs := rpc.Pipe()
		to, ended := run(t.Context(), []conduct.Component{{Transport: ours}}, &conduct.Component{Name: "slow", Transport: connect},
			&conduct.Options{InitTime: 10 * time.Second, DrainTime: time.Second - 1})
		client, proxy = newEnd(t, "client", to), newEnd(t, "proxy:0", theirs)
		t.Cleanup(func() { client.Close(); proxy.Close() })
		client.send(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
		proxy.want(`{"jsonrpc":"2.0","id":1,"method":"proxy/initialize"}`)
		proxy.send(`{"jsonrpc":"2.0","id":"p","method":"proxy/successor","params":{"method":"initialize"}}`,
			`{"jsonrpc":"2.0","method":"proxy/successor","params":{"method":"x"}}`)
		return client, proxy, ended
	}
	t.Run("starts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := rpc.Pipe()
			_, proxy, _ := begin(t, func(ctx context.Context) (rpc.Stream, error) {
				time.Sleep(9 * time.Second)
				return ours.Connect(ctx)
			})
			agent := newEnd(t, "agent", theirs)
			defer agent.Close()
			agent.want(`{"jsonrpc":"2.0","id":2,"method":"initialize"}`, `{"jsonrpc":"2.0","method":"x"}`)
			agent.send(`{"jsonrpc":"2.0","id":2,"result":{}}`)
			proxy.want(`{"jsonrpc":"2.0","id":"p","result":{}}`)
		})
	})
	t.Run("too slow", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			closed := make(chan struct{})
			client, _, ended := begin(t, func(ctx context.Context) (rpc.Stream, error) {
				<-ctx.Done()
				return deafStream{closed}, nil // it has just started
			})
			contains(t, client.next(), `"message":"agent (slow): has not answered initialize within 10s"`)
			if err := <-ended; err == nil {
				t.Error("no error")
			}
			<-closed
		})
	})
	t.Run("after the client ended its input", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := rpc.Pipe()
			client, proxy, ended := begin(t, func(ctx context.Context) (rpc.Stream, error) {
				time.Sleep(8 * time.Second)
				return ours.Connect(ctx)
			})
			agent := newEnd(t, "agent", theirs)
			defer agent.Close()
			must.Do(t, client.Stream.(rpc.HalfCloser).CloseWrite())
			agent.want(`{"jsonrpc":"2.0","id":2,"method":"initialize"}`, `{"jsonrpc":"2.0","method":"x"}`)
			agent.send(`{"jsonrpc":"2.0","id":2,"result":{}}`)
			proxy.want(`{"jsonrpc":"2.0","id":"p","result":{}}`)
			proxy.send(`{"jsonrpc":"2.0","id":1,"result":{}}`)
			client.want(`{"jsonrpc":"2.0","id":1,"result":{}}`)
			must.Do(t, <-ended)
		})
	})
	t.Run("the client ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client, _, ended := begin(t, func(ctx context.Context) (rpc.Stream, error) {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			})
			client.Close()
			must.Do(t, <-ended)
		})
	})
}

// A component cannot fill the log.
func TestLogIsBounded(t *testing.T) {
	for name, line := range map[string]string{
		"answers":       `{"jsonrpc":"2.0","id":%d,"result":1}`,
		"broken":        `{"jsonrpc":"2.0","id":%d,"result":[}`,
		"notifications": `{"jsonrpc":"2.0","method":"proxy/successor","params":{"n":%d}}`,
		"cancellations": `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"n":%d}}`,
		"text":          `%d`,
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, 1, true, nil)
			c.initialize(answer1)
			for n := range 1000 {
				c.components[0].send(fmt.Sprintf(line, n+10))
			}
			c.components[0].send(`{"jsonrpc":"2.0","method":"x"}`)
			c.client.next()
			if n := strings.Count(c.log.String(), "\n"); n == 0 || n > 101 {
				t.Errorf("%d lines", n)
			}
			if more := strings.Contains(c.log.String(), `msg="more of this is not logged" from="proxy:0 (P0)"`); more == (name == "text") {
				t.Errorf("log:\n%s", &c.log)
			}
		})
	}
}

// What is not answered is one line for each component, whatever the methods.
func TestUnansweredIsBounded(t *testing.T) {
	c := start(t, 0, true, &conduct.Options{DrainTime: time.Millisecond})
	c.initialize(answer1)
	for n := range 1000 {
		c.client.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"m%d"}`, n, n))
		c.components[0].next()
	}
	c.hangUp()
	must.Do(t, c.result())
	if log := c.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, `by="agent (A)" method=m0 count=1000`) {
		t.Errorf("log:\n%s", log)
	}
}

// The errors of many requests do not each repeat what a component has said.
func TestErrorsAreBounded(t *testing.T) {
	read := make(chan struct{})
	agent := transport(func(context.Context) (rpc.Stream, error) { return &dyingStream{read: read, left: 10_000}, nil })
	client, ended := runRaw(t, nil, &conduct.Component{Name: "A", Transport: agent})
	defer client.Close()
	client.send(`{"jsonrpc":"2.0","id":0,"method":"initialize"}`)
	for n := range 9_999 {
		client.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"x"}`, n+1))
	}
	bytes := 0
	for n := range 10_000 {
		line := client.next()
		if bytes += len(line); n == 0 {
			contains(t, line, `"stderr":"eee`)
		}
		contains(t, line, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"agent (A): `, n))
	}
	if bytes > 4<<20 {
		t.Errorf("%d bytes", bytes)
	}
	client.Close()
	if err := <-ended; err == nil {
		t.Error("no error")
	}
}

// dyingStream takes so many messages, and then ends as a subprocess does.
type dyingStream struct {
	read chan struct{} // closed when it has them
	left int
}

func (s *dyingStream) Read() ([]byte, error) {
	<-s.read
	return nil, &rpc.ExitError{State: &os.ProcessState{}, ProcessOutput: rpc.ProcessOutput{Stderr: strings.Repeat("eee\n", 2<<10)}}
}

func (s *dyingStream) Write([]byte) error {
	if s.left--; s.left == 0 {
		close(s.read)
	}
	return nil
}

func (s *dyingStream) Close() error { return nil }

// A message of a stream that is not this library's may have several lines.
func TestSeveralLines(t *testing.T) {
	read := make(chan string, 1)
	agent := transport(func(context.Context) (rpc.Stream, error) { return stringStream(read), nil })
	client, _ := runRaw(t, nil, &conduct.Component{Transport: agent})
	defer client.Close()
	client.send(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
	read <- "{\"jsonrpc\":\"2.0\",\n\"method\":\"x\",\r\n\"params\":[\n]}"
	if got := client.next(); strings.Join(strings.Fields(got), "") != `{"jsonrpc":"2.0","method":"x","params":[]}` {
		t.Errorf("got %q", got)
	}
	close(read)
}

// stringStream is a stream that has messages, and takes all.
type stringStream chan string

func (s stringStream) Read() ([]byte, error) {
	if m, ok := <-s; ok {
		return []byte(m), nil
	}
	return nil, io.EOF
}

func (s stringStream) Write([]byte) error { return nil }
func (s stringStream) Close() error       { return errors.ErrUnsupported }
