package local

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// Defaults of [TerminalsOptions].
const (
	DefaultOutputLimit    = 1 << 20  // bytes
	DefaultMaxOutputLimit = 8 << 20  // bytes; at most six times as much in JSON
	DefaultMaxTotalOutput = 64 << 20 // bytes
	DefaultMaxTerminals   = 64
	DefaultKillGrace      = time.Second
)

// TerminalsOptions configures [NewTerminals].
type TerminalsOptions struct {
	// Env is the environment of commands. Nil means the environment of this process; if the approval is [Asking], only
	// such variables of it as PATH and HOME, which hold no secrets. Variables in a request are added to it, replacing
	// those of the same name.
	Env []string
	// Shell, such as [DefaultShell], is a program with arguments that is run with the command of a request as an
	// additional argument, if the request has no args and there is no executable of that name: some agents put a whole
	// command line, such as "go test ./... | tail", into command. If it is nil, no shell is run, and such requests
	// fail. The shell runs the agent's text as a script. This gives the agent no new abilities: it could name a shell
	// as the command.
	Shell []string
	// OutputLimit is how many bytes of output are kept if a request does not say; 0 means DefaultOutputLimit.
	// MaxOutputLimit is the most that a request can get; 0 means DefaultMaxOutputLimit.
	OutputLimit, MaxOutputLimit int
	// MaxTotalOutput is how much output all terminals keep together, in bytes of memory; 0 means DefaultMaxTotalOutput.
	// If they would keep more, the terminal that keeps most drops its oldest output, as if it had a lower limit, and
	// its output is then marked as truncated. The newest output of each terminal, up to 32 KiB, is always kept.
	MaxTotalOutput int
	// MaxTerminals is how many terminals may exist in all sessions together; 0 means DefaultMaxTerminals.
	MaxTerminals int
	// KillGrace is how long a command may take to end after SIGTERM before it gets SIGKILL; 0 means DefaultKillGrace;
	// if it is negative, SIGKILL is sent at once. Windows has no SIGTERM: there, commands always end at once, with exit
	// code 1.
	KillGrace time.Duration
	// OnOutput, if set, gets the output of each terminal as it arrives, byte for byte, to show it to the user. The
	// calls for one terminal come in order and from one goroutine, the first possibly before CreateTerminal has
	// returned its id. During a call, the command's output is held up, and so is its release; OnOutput must not wait
	// for either. The bytes are valid only during the call.
	OnOutput func(session Session, terminal acp.TerminalID, output []byte)
}

// Terminals serves terminal/create, output, wait_for_exit, kill and release with processes on this machine.
//
// A command is started without a shell, unless [TerminalsOptions.Shell] says otherwise: command is the executable,
// looked up in the PATH of the command's environment, and args are its arguments, unchanged. Its input is empty. Its
// stdout and stderr are read from one pipe, in the order in which they were written. It starts in the first of the
// session's directories, or in the one inside them that the request names.
//
// Processes that a command leaves running when it exits continue until the terminal is killed or released; their output
// is still kept.
//
// Killing, and therefore releasing and closing, reaches all processes of the command, except, on Unix, those that have
// moved to another session or process group, as daemons and the program setsid do: they keep running, and nothing waits
// for them. This package cannot end them, because the means to do so, a cgroup or being the subreaper for orphans,
// belong to the whole application. An application that must leave nothing behind runs in a cgroup or container that
// ends with it.
//
// When a connection ends, all terminals of its sessions are released.
//
// Terminals may be used concurrently, and by several connections. [Terminals.Close] must be called at the end;
// otherwise commands may be left running.
type Terminals struct {
	roots    *Roots
	approval *Approval // nil refuses commands
	options  TerminalsOptions
	outputs  *outputPool // of all terminals

	mu     sync.Mutex
	live   map[acp.TerminalID]*terminal // from before the start until removed to be freed
	count  int                          // live terminals, and those being freed
	all    sync.WaitGroup               // one for each counted terminal
	conns  watcher                      // the connections of terminals
	stuck  error                        // errors of freeing terminals when their connection ended
	closed bool
}

// NewTerminals returns a Terminals that runs commands inside roots. If approval is nil, it runs none. Nil options mean
// the defaults.
func NewTerminals(roots *Roots, approval *Approval, options *TerminalsOptions) *Terminals {
	t := &Terminals{roots: roots, approval: approval, live: make(map[acp.TerminalID]*terminal), conns: newWatcher(),
		options: *cmp.Or(options, &TerminalsOptions{})}
	o := &t.options
	if o.Env == nil {
		o.Env = approval.environ()
	}
	o.Env, o.Shell = slices.Clone(o.Env), slices.Clone(o.Shell)
	o.OutputLimit = orDefault(o.OutputLimit, DefaultOutputLimit)
	o.MaxOutputLimit = orDefault(o.MaxOutputLimit, DefaultMaxOutputLimit)
	o.MaxTotalOutput = orDefault(o.MaxTotalOutput, DefaultMaxTotalOutput)
	t.outputs = newOutputPool(o.MaxTotalOutput, pieceSize)
	o.MaxTerminals = orDefault(o.MaxTerminals, DefaultMaxTerminals)
	o.KillGrace = cmp.Or(o.KillGrace, DefaultKillGrace)
	return t
}

// orDefault returns bound if it is set, and otherwise def.
func orDefault[T int | int64](bound, def T) T {
	if bound <= 0 {
		return def
	}
	return bound
}

// Close releases all terminals and waits until their commands have ended. Later requests fail. The error names the
// commands that the system fails to end, if any, including those of connections that ended before.
func (t *Terminals) Close() error {
	t.mu.Lock()
	if !t.closed {
		t.closed = true
		close(t.conns.stop)
	}
	t.mu.Unlock()
	err := t.freeAll(func(*terminal) bool { return true })
	t.conns.tasks.Wait()
	t.all.Wait() // for those being freed by others
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(t.stuck, err)
}

// CloseSession releases the terminals of a session, including those that are being created, and waits until their
// commands have ended. The error names the commands that the system fails to end, if any.
//
// The session may continue, and can create terminals afterwards. To prevent that, call [Roots.RemoveSession] before
// CloseSession; this works if no directories are set for all sessions.
func (t *Terminals) CloseSession(session Session) error {
	key := keyOf(session)
	return t.freeAll(func(term *terminal) bool { return term.session == key })
}

// closeConn releases the terminals of a connection that is over.
func (t *Terminals) closeConn(conn *rpc.Conn) {
	t.mu.Lock()
	delete(t.conns.conns, conn)
	t.mu.Unlock()
	err := t.freeAll(func(term *terminal) bool { return term.session.conn == conn })
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stuck = errors.Join(t.stuck, err)
}

// approve asks about a command.
func (t *Terminals) approve(ctx context.Context, session Session, c command) error {
	if t.approval == nil {
		return ErrRejected
	}
	set, err := t.roots.rootsOf(keyOf(session))
	if err != nil {
		return err
	}
	return t.approval.approveCommand(ctx, session, c, set.home.names[0])
}

// create starts a command and returns the id of its terminal. A negative limit is the default one.
func (t *Terminals) create(session Session, c command, limit int) (acp.TerminalID, error) {
	if limit < 0 {
		limit = t.options.OutputLimit
	}
	term := &terminal{
		id:      acp.TerminalID("term_" + rand.Text()),
		session: keyOf(session),
		output:  t.outputs.output(min(limit, t.options.MaxOutputLimit)),
		started: make(chan struct{}),
	}
	if show := t.options.OnOutput; show != nil {
		term.show = func(p []byte) { show(session, term.id, p) }
	}
	// This comes first, so that a caller that removes the session's directories and then closes the session leaves
	// nothing behind.
	if err := t.add(term); err != nil {
		term.output.free()
		return "", err
	}
	if err := term.start(func() error { return t.launch(term, c) }); err != nil {
		t.freeAll(func(other *terminal) bool { return other == term }) // nothing was started, so it cannot fail
		return "", err
	}
	if !t.has(term) {
		return "", ErrClosed // whoever removed it frees it
	}
	return term.id, nil
}

// launch starts a command in a terminal.
func (t *Terminals) launch(term *terminal, c command) error {
	set, err := t.roots.rootsOf(term.session)
	if err != nil {
		return err
	}
	dir, err := c.directory(set)
	if err != nil {
		return err
	}
	defer dir.close()
	cmd, err := c.build(dir, t.options.Env, t.options.Shell)
	if err != nil {
		return err
	}
	if err := term.launch(cmd); err != nil {
		return startError(c.name, err)
	}
	return nil
}

// outputLimit returns how much output a terminal keeps at most.
func (t *Terminals) outputLimit(session sessionKey, id acp.TerminalID) (int, error) {
	term, err := t.find(session, id, false)
	if err != nil {
		return 0, err
	}
	return term.output.limit, nil
}

// tail returns the output that a terminal keeps, whether earlier output was dropped, and how the command ended, or nil
// while it runs.
func (t *Terminals) tail(session sessionKey, id acp.TerminalID) (text string, truncated bool, exit *exitStatus,
	err error) {
	term, err := t.find(session, id, false)
	if err != nil {
		return "", false, nil, err
	}
	exit = term.exit() // first, so that a status comes with all of the output
	text, truncated = term.output.tail()
	return text, truncated, exit, nil
}

// wait waits until the command of a terminal has ended, and returns how.
func (t *Terminals) wait(ctx context.Context, session sessionKey, id acp.TerminalID) (*exitStatus, error) {
	term, err := t.find(session, id, false)
	if err != nil {
		return nil, err
	}
	return term.wait(ctx)
}

// kill ends the command of a terminal, and waits until it has ended. The terminal stays.
func (t *Terminals) kill(ctx context.Context, session sessionKey, id acp.TerminalID) error {
	term, err := t.find(session, id, false)
	if err != nil {
		return err
	}
	term.kill(ctx, t.options.KillGrace)
	_, err = term.wait(ctx)
	return err
}

// release ends a terminal and waits until nothing of it is left. Its id becomes unknown at once.
func (t *Terminals) release(ctx context.Context, session sessionKey, id acp.TerminalID) error {
	term, err := t.find(session, id, true)
	if err != nil {
		return err
	}
	return t.free(ctx, term)
}

// find returns a terminal of a session, and removes it if take is set.
func (t *Terminals) find(session sessionKey, id acp.TerminalID, take bool) (*terminal, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	term, ok := t.live[id]
	if !ok || term.session != session {
		return nil, unknownTerminal(id)
	}
	if take {
		delete(t.live, id)
	}
	return term, nil
}

// freeAll removes all terminals that match and frees them concurrently.
func (t *Terminals) freeAll(match func(*terminal) bool) error {
	var taken []*terminal
	t.mu.Lock()
	for id, term := range t.live {
		if match(term) {
			taken = append(taken, term)
			delete(t.live, id)
		}
	}
	t.mu.Unlock()
	errs := make([]error, len(taken))
	var wg sync.WaitGroup
	for i, term := range taken {
		wg.Go(func() { errs[i] = t.free(context.Background(), term) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// add counts a terminal that is about to be started, if the limit allows one more. From then on a caller that closes
// its session, its connection or all terminals finds it.
func (t *Terminals) add(term *terminal) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return ErrClosed
	case t.count >= t.options.MaxTerminals:
		return fmt.Errorf("%w: there are %d, release one first", ErrTooMany, t.count)
	case !t.conns.watch(term.session.conn, t.closeConn):
		return ErrClosed
	}
	t.live[term.id] = term
	t.count++
	t.all.Add(1)
	return nil
}

// has reports whether the terminal has not yet been removed to be freed.
func (t *Terminals) has(term *terminal) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live[term.id] == term
}

// free frees a terminal that can no longer be requested, and makes room for another.
func (t *Terminals) free(ctx context.Context, term *terminal) error {
	defer func() {
		term.output.free()
		t.mu.Lock()
		defer t.mu.Unlock()
		t.count--
		t.all.Done()
	}()
	if err := term.free(ctx, t.options.KillGrace); err != nil {
		return fmt.Errorf("terminal %s (%s): %w", term.id, quote(term.cmd.Args[0]), err)
	}
	return nil
}
