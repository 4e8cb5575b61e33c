//go:build unix

package local

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// However much a peer asks for, and however slowly it reads, few of its answers are in memory at a time.
func TestLargeAnswersWait(t *testing.T) {
	tier.Need(t, tier.Normal)
	const size, room = 1 << 20, 2
	requests := tier.Pick(12, 12, 24, 60)
	terminals, dir := newTerminals(t, &TerminalsOptions{OutputLimit: size})
	path := filepath.Join(dir, "large.txt")
	put(t, path, strings.Repeat("x", size))
	id := create(t, terminals, "cat", path)
	finish(t, terminals, id)
	files := NewFiles(terminals.roots, Trusted(), nil)
	for name, answer := range map[string]func(context.Context) (string, error){
		"fs/read_text_file": func(ctx context.Context) (string, error) {
			res, err := files.ReadTextFile(ctx, session, &acp.ReadTextFileRequest{Path: path})
			if err != nil {
				return "", err
			}
			return res.Content, nil
		},
		"terminal/output": func(ctx context.Context) (string, error) {
			res, err := terminals.TerminalOutput(ctx, session, &acp.TerminalOutputRequest{TerminalID: id})
			if err != nil {
				return "", err
			}
			return res.Output, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var made atomic.Int32
				ext := &rpc.Extensions[rpc.Conn]{}
				method := rpc.RequestMethod[struct{}, string]{Name: name}
				rpc.HandleMethod(ext, method, func(ctx context.Context, _ *rpc.Conn, _ *struct{}) (*string, error) {
					text, err := answer(ctx)
					if err == nil {
						made.Add(1)
					}
					return &text, err
				})
				conn, peer := budgeted(t, ext, 8*room*size) // an eighth is for answers
				defer conn.Close()
				defer peer.Close()
				for i := range requests {
					must.Do(t, peer.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{}}`, i, name)))
				}
				for i := range requests {
					synctest.Wait()
					// One is being written, and the writer may have another one.
					if ahead := int(made.Load()) - i; ahead > room+2 {
						t.Fatalf("%d texts are made and wait", ahead)
					}
					text, err := peer.Read()
					if err != nil || len(text) < size {
						t.Fatalf("answer %d: %.200s, %v", i, text, err)
					}
				}
			})
		})
	}
}

// budgeted returns a connection with a budget, and its other end. It is closed by the caller, within the bubble of
// synctest.
func budgeted(t *testing.T, ext *rpc.Extensions[rpc.Conn], budget int) (*rpc.Conn, rpc.Stream) {
	t.Helper()
	here, there := rpc.Pipe()
	conn := must.Get(rpc.Connect(t.Context(), here, ext, &rpc.Options{MaxBytes: budget}))(t)
	peer := must.Get(there.Connect(t.Context()))(t)
	return conn, peer
}
