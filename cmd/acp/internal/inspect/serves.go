package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/rpc"
)

// serves answers the agent's requests for files and terminals, from a folder or in memory.
type serves struct {
	ctx       context.Context
	cancel    context.CancelFunc
	running   sync.WaitGroup
	conn      *rpc.Conn // what package local knows the connection by
	peer      rpc.Stream
	roots     *local.Roots
	files     *local.Files
	terminals *local.Terminals

	mu        sync.Mutex
	count     int
	texts     map[string]string // the files in memory
	size      int               // of them
	simulated map[acp.TerminalID]string
	created   int
}

// The limits of what is served.
const (
	maxAnswers   = 1000 // at a time
	maxFiles     = 1000
	maxFileBytes = 64 << 20 // of all files in memory
)

// newServes returns what serves an agent. Without a folder, it serves only from memory. ask, unless it is nil, decides
// about each write and each command in the folder.
func newServes(folder string, ask func(context.Context, shown,
	*acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error)) (*serves, error) {
	s := &serves{texts: map[string]string{}, simulated: map[acp.TerminalID]string{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if folder == "" {
		return s, nil
	}
	var err error
	if s.roots, err = local.OpenRoots(folder); err != nil {
		return nil, err
	}
	here, there := rpc.Pipe()
	if s.peer, err = there.Connect(s.ctx); err != nil {
		return nil, errors.Join(err, s.roots.Close())
	}
	if s.conn, err = rpc.Connect(s.ctx, here, &rpc.Extensions[rpc.Conn]{}, nil); err != nil {
		return nil, errors.Join(err, s.roots.Close())
	}
	approval := local.Trusted()
	if ask != nil {
		approval = local.Asking(func(ctx context.Context, _ sessionOf,
			req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			return ask(ctx, ctx.Value(shownKey{}).(shown), req)
		})
	}
	s.files, s.terminals = local.NewFiles(s.roots, approval, nil),
		local.NewTerminals(s.roots, approval, &local.TerminalsOptions{Shell: local.DefaultShell()})
	return s, nil
}

// close ends the commands, and waits for the answers in progress.
func (s *serves) close() error {
	s.cancel()
	var err error
	if s.roots != nil {
		err = errors.Join(s.terminals.Close(), s.conn.Close(), s.peer.Close(), s.roots.Close())
	}
	s.running.Wait()
	return err
}

// shown says where the page shows a request, and whether a part of it is masked. The context of its handler has it.
type shown struct {
	row    int
	id     json.RawMessage
	masked bool
}

type shownKey struct{}

// run runs an answer in the background.
func (s *serves) run(do func(context.Context)) {
	s.mu.Lock()
	s.count++
	full := s.count > maxAnswers
	s.mu.Unlock()
	ctx := s.ctx
	if full {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		cancel(errBusy)
	}
	s.running.Go(func() {
		defer func() {
			s.mu.Lock()
			s.count--
			s.mu.Unlock()
		}()
		do(ctx)
	})
}

var errBusy = rpc.ErrInternal.WithMessagef("too many requests at a time")

// sessionOf is a session as package local knows it.
type sessionOf struct {
	id   acp.SessionID
	conn *rpc.Conn
}

func (s sessionOf) ID() acp.SessionID { return s.id }
func (s sessionOf) RPC() *rpc.Conn    { return s.conn }

type handler func(ctx context.Context, params json.RawMessage) (any, error)

// handler returns what answers a method; nil if the user does.
func (s *serves) handler(method string, a *answers) handler {
	group, _, _ := strings.Cut(method, "/")
	mode := map[string]string{"fs": a.FS, "terminal": a.Terminal}[group]
	disk := mode == "folder" && s.roots != nil
	if mode != "memory" && !disk {
		return nil
	}
	switch method {
	case "fs/read_text_file":
		return serving(s, disk, s.files.ReadTextFile, s.readText)
	case "fs/write_text_file":
		return serving(s, disk, s.files.WriteTextFile, s.writeText)
	case "terminal/create":
		return serving(s, disk, s.terminals.CreateTerminal, s.create)
	case "terminal/output":
		return serving(s, disk, s.terminals.TerminalOutput, s.output)
	case "terminal/wait_for_exit":
		return serving(s, disk, s.terminals.WaitForTerminalExit, s.wait)
	case "terminal/kill":
		return serving(s, disk, s.terminals.KillTerminal, s.kill)
	case "terminal/release":
		return serving(s, disk, s.terminals.ReleaseTerminal, s.release)
	}
	return nil
}

// serving returns the handler that decodes the params, for the disk or for memory.
func serving[P, R any](
	s *serves, disk bool, onDisk func(context.Context, local.Session, *P) (*R, error), inMemory func(*P) (*R, error),
) handler {
	return func(ctx context.Context, params json.RawMessage) (any, error) {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		req := new(P)
		if err := json.Unmarshal(params, req); err != nil {
			return nil, rpc.InvalidParamsf("%v", err)
		}
		if !disk {
			return inMemory(req)
		}
		var named struct {
			Session acp.SessionID `json:"sessionId"`
		}
		if err := json.Unmarshal(params, &named); err != nil {
			return nil, rpc.InvalidParamsf("%v", err)
		}
		return onDisk(ctx, sessionOf{named.Session, s.conn}, req)
	}
}

func (s *serves) readText(req *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.texts[req.Path]
	if !ok {
		return nil, rpc.ErrResourceNotFound.WithMessagef("No such file or directory")
	}
	lines := strings.SplitAfter(text, "\n")
	from := min(max(int(req.Line.Or(1)), 1)-1, len(lines))
	to := len(lines)
	if req.Limit.Present() {
		to = min(to, from+int(req.Limit.Value()))
	}
	return &acp.ReadTextFileResponse{Content: strings.Join(lines[from:to], "")}, nil
}

func (s *serves) writeText(req *acp.WriteTextFileRequest) (*acp.WriteTextFileResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, known := s.texts[req.Path]
	if !known && len(s.texts) >= maxFiles || s.size-len(old)+len(req.Content) > maxFileBytes {
		return nil, rpc.ErrInternal.WithMessagef("no space left in memory")
	}
	s.size += len(req.Content) - len(old)
	s.texts[req.Path] = req.Content
	return &acp.WriteTextFileResponse{}, nil
}

// A command in memory prints itself and ends at once.
func (s *serves) create(req *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.simulated) >= maxFiles {
		return nil, rpc.ErrInternal.WithMessagef("too many terminals")
	}
	s.created++
	id := acp.TerminalID(fmt.Sprintf("simulated-%d", s.created))
	line := strings.Join(append([]string{"simulated:", req.Command}, req.Args...), " ") + "\n"
	s.simulated[id] = clip(line, maxItemText)
	return &acp.CreateTerminalResponse{TerminalID: id}, nil
}

func (s *serves) terminal(id acp.TerminalID) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.simulated[id]
	if !ok {
		return "", rpc.ErrResourceNotFound.WithMessagef("there is no terminal %q", id)
	}
	return text, nil
}

func (s *serves) output(req *acp.TerminalOutputRequest) (*acp.TerminalOutputResponse, error) {
	text, err := s.terminal(req.TerminalID)
	if err != nil {
		return nil, err
	}
	return &acp.TerminalOutputResponse{Output: text,
		ExitStatus: acp.Some(acp.TerminalExitStatus{ExitCode: acp.Some[uint32](0)})}, nil
}

func (s *serves) wait(req *acp.WaitForTerminalExitRequest) (*acp.WaitForTerminalExitResponse, error) {
	if _, err := s.terminal(req.TerminalID); err != nil {
		return nil, err
	}
	return &acp.WaitForTerminalExitResponse{ExitCode: acp.Some[uint32](0)}, nil
}

func (s *serves) kill(req *acp.KillTerminalRequest) (*acp.KillTerminalResponse, error) {
	_, err := s.terminal(req.TerminalID)
	return &acp.KillTerminalResponse{}, err
}

func (s *serves) release(req *acp.ReleaseTerminalRequest) (*acp.ReleaseTerminalResponse, error) {
	_, err := s.terminal(req.TerminalID)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.simulated, req.TerminalID)
	return &acp.ReleaseTerminalResponse{}, err
}
