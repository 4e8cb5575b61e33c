package rpc

import (
	"context"
	"errors"
	"io"
	"os"
)

// StdioTransport is the transport of an agent: its client reads its standard output and writes its standard input.
// Standard output must carry nothing else, so the program must not print to it; standard error is free for logs. A
// StdioTransport connects once.
type StdioTransport struct {
	// MaxMessage is the longest message accepted, in bytes; 0 means DefaultMaxMessage.
	MaxMessage int

	once once
}

// Stdio returns the transport over this process's standard input and output.
func Stdio() *StdioTransport { return &StdioTransport{} }

// Connect implements Transport. Closing the stream closes standard output.
func (t *StdioTransport) Connect(context.Context) (Stream, error) {
	if err := t.once.use(); err != nil {
		return nil, err
	}
	in, out := interruptible(os.Stdin), interruptible(os.Stdout)
	closeOut := out.close
	out.close = func() error { return errors.Join(closeOut(), os.Stdout.Close()) }
	return newLineStream(in, out, t.MaxMessage, nil), nil
}

// stdFile is a standard file whose Read and Write can be interrupted by Close.
type stdFile struct {
	io.ReadWriter
	close func() error
}

func (f *stdFile) Close() error { return f.close() }

// pumped makes reading interruptible for a file that the runtime cannot poll. A goroutine that ends with the input, or
// with the process, copies the input; writing to such files is not interrupted.
func pumped(f *os.File) *stdFile {
	r, w := io.Pipe()
	started := false
	read := readerFunc(func(p []byte) (int, error) {
		if !started {
			started = true
			go func() {
				_, err := io.Copy(w, f)
				w.CloseWithError(err)
			}()
		}
		return r.Read(p)
	})
	return &stdFile{ReadWriter: struct {
		io.Reader
		io.Writer
	}{read, f}, close: r.Close}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
