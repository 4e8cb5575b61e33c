package local

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
)

// session is the one that tests use unless sessions are what they test.
var session sessionKey

func TestMain(m *testing.M) { goleak.VerifyTestMain(connected{m}) }

// connected runs tests while the connection of session is open.
type connected struct{ *testing.M }

func (c connected) Run() int {
	transport, _ := rpc.Pipe()
	conn, err := rpc.Connect(context.Background(), transport, nil, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer conn.Close()
	session = sessionKey{conn, "s1"}
	return c.M.Run()
}

// A key is a Session of tests.
func (k sessionKey) ID() acp.SessionID { return k.id }
func (k sessionKey) RPC() *rpc.Conn    { return k.conn }

// sibling returns another session of the same connection.
func sibling(id acp.SessionID) sessionKey { return sessionKey{session.conn, id} }

func openRoots(t *testing.T, dirs ...string) *Roots {
	t.Helper()
	roots := must.Get(OpenRoots(dirs...))(t)
	t.Cleanup(func() { roots.Close() })
	return roots
}
