package rpc

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// childEnv makes the test binary behave like a subprocess of some kind.
const childEnv = "ACP_TEST_CHILD"

func TestMain(m *testing.M) {
	if kind := os.Getenv(childEnv); kind != "" {
		os.Exit(child(kind))
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // passing tests print nothing
	goleak.VerifyTestMain(m)
}

// child is the subprocess.
func child(kind string) int {
	switch kind {
	case "serve": // a connection over our own Stdio
		ext := &Extensions[Conn]{}
		HandleMethod(ext, echoMethod, func(_ context.Context, _ *Conn, p *echoParams) (*echoParams, error) { return p, nil })
		conn, err := Connect(context.Background(), Stdio(), ext, nil)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if err := conn.Wait(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	case "die": // reads a request and dies
		bufio.NewReader(os.Stdin).ReadString('\n')
		fmt.Print(note("update", `{"n":1}`) + "\n")
		fmt.Fprintln(os.Stderr, strings.Repeat("noise\n", 100_000)+"fatal: out of cheese")
		return 3
	case "panic": // with more on standard error than is kept
		for range 500 {
			go func() { select {} }()
		}
		debug.SetTraceback("all")
		panic("out of cheese")
	case "stubborn": // ignores end of input and SIGTERM, and has a child that does too
		signal.Ignore(syscall.SIGTERM)
		if os.Getenv("ACP_TEST_GRANDCHILD") == "" {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "ACP_TEST_GRANDCHILD=1")
			cmd.Stdout = os.Stdout
			if err := cmd.Start(); err != nil {
				return 1
			}
			fmt.Printf(`{"jsonrpc":"2.0","method":"pids","params":{"pids":[%d,%d]}}`+"\n", os.Getpid(), cmd.Process.Pid)
		}
		time.Sleep(time.Minute)
	case "orphan": // ends at once and leaves a child that holds its output
		cmd := exec.Command("sleep", "60")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			return 1
		}
		fmt.Printf(`{"jsonrpc":"2.0","method":"pids","params":{"pids":[%d]}}`+"\n", cmd.Process.Pid)
	case "half close": // ends its output, and then waits for the end of its input
		stream, err := (&StdioTransport{MaxMessage: 100}).Connect(context.Background())
		if err == nil {
			err = stream.(HalfCloser).CloseWrite()
		}
		if err == nil {
			_, err = stream.Read()
		}
		if err != io.EOF {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

// echoParams are the parameters of echoMethod, and its result.
type echoParams struct {
	SessionID string `json:"sessionId,omitempty"`
	N         int    `json:"n"`
}

var echoMethod = RequestMethod[echoParams, echoParams]{Name: "echo"}

const patience = time.Minute

func request(id any, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":%q,"params":%s}`, id, method, params)
}

func note(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
}
