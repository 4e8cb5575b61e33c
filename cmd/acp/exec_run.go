package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/cmd/acp/internal/agents"
	"github.com/acpgo/sdk/cmd/acp/internal/names"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/internal/await"
	"github.com/acpgo/sdk/internal/filelock"
)

// The exit statuses of acp exec in addition to those of all commands.
const (
	statusRefused = 4
	statusLogin   = 5
	statusDied    = 6
	statusUnasked = 7
	statusTimeout = 124
	statusPipe    = statusBySignal + 13
)

// How long a cancelled turn may take to end, then the program, and then its last output.
const (
	cancelGrace = 10 * time.Second
	killAfter   = 15 * time.Second
	flushTime   = 2 * time.Second
)

// execution is one run of acp exec.
type execution struct {
	p       *program
	f       *execFlags
	format  string
	options *talk.Options // of each client, according to the settings
	prompt  string

	out      *outlet
	terminal bool      // whether standard output is a terminal
	together bool      // whether standard output and standard error are the same file
	tty      *terminal // on which the user is asked; nil if no user is asked

	agent  *agents.Agent
	key    string         // the agent in the names of sessions
	lock   *filelock.Lock // of the session's name, or nil
	record string         // the file of the recording, or ""
	output

	limit limit

	ctx  context.Context // ends when the turn must be cancelled; its cause is an *interruption
	kill context.Context // ends when the agent must be killed
}

// outcome is the result of the turn with an agent.
type outcome struct {
	status  int
	err     error
	stop    acp.StopReason
	seconds float64
}

// begin makes signals, the timeout, and the end of standard output end the run.
func (x *execution) begin() (stop func()) {
	p := x.p
	x.terminal = isTerminal(p.stdout)
	x.together = x.terminal && isTerminal(p.stderr)
	ctx, cancel := context.WithCancelCause(context.Background())
	kill, cancelKill := context.WithCancel(context.Background())
	x.ctx, x.kill = ctx, kill
	x.out = newOutlet(p.stdout, p.stderr, func(err error) { cancel(x.unwritable(err)) })
	signals := make(chan os.Signal, 4)
	caught := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		caught = append(caught, syscall.SIGHUP)
	}
	signal.Notify(signals, caught...)
	// Makes writing to a closed pipe an error instead of ending the program.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	timeout := x.limit.start(x.f.cfg.Timeout)
	over := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		var late <-chan time.Time
		cancelled := ctx.Done()
		for {
			select {
			case s := <-signals:
				if ctx.Err() != nil {
					cancelKill()
				}
				cancel(signalled(s))
			case <-timeout:
				cancel(&interruption{statusTimeout, fmt.Sprintf("not done within %v", x.f.cfg.Timeout)})
			case <-cancelled:
				cancelled = nil
				x.out.release()
				late = time.After(killAfter)
			case <-late:
				cancelKill()
			case <-over:
				return
			}
		}
	})
	return func() {
		close(over)
		watching.Wait()
		cancel(nil)
		cancelKill()
		x.flush()
		signal.Stop(signals)
		signal.Stop(pipe)
	}
}

// unwritable returns the interruption for an error of standard output.
func (x *execution) unwritable(err error) *interruption {
	switch {
	case x.terminal: // the signal may arrive later
		return &interruption{statusBySignal + int(syscall.SIGHUP), "the terminal was closed"}
	case errors.Is(err, syscall.EPIPE):
		return &interruption{statusPipe, "standard output was closed"}
	}
	return &interruption{statusFailed, fmt.Sprintf("standard output: %v", err)}
}

// flush waits for the output, which may not be read. After the run is cancelled, it does not wait long.
func (x *execution) flush() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if x.ctx.Err() != nil {
		time.AfterFunc(flushTime, cancel)
	} else {
		defer context.AfterFunc(x.ctx, func() { time.AfterFunc(flushTime, cancel) })()
	}
	x.out.finish(ctx)
}

// failed returns an error that occurred before any agent got the prompt.
func (x *execution) failed(err error) error {
	var o outcome
	x.classify(&o, err)
	if e, ok := errors.AsType[*exit](err); ok {
		return e
	}
	return &exit{o.status, o.err}
}

// perform runs the prompt and prints the result.
func (x *execution) perform() error {
	if x.tty = x.askable(); x.tty != nil {
		// The goroutine that reads it ends with the next line, or with the program.
		defer func() { _ = x.tty.Close() }()
	}
	began := time.Now()
	var o outcome
	if err := x.talk(&o); err != nil {
		x.classify(&o, err)
	}
	o.seconds = float64(time.Since(began).Milliseconds()) / 1000
	if o.status == statusOK && o.err == nil && x.ctx.Err() != nil {
		x.classify(&o, context.Cause(x.ctx)) // the output may not have been read
	}
	x.close(&o)
	if x.flush(); x.out.failure() != nil {
		if x.classify(&o, x.out.failure()); o.status == statusPipe {
			o.err = nil // as in other programs whose reader has stopped
		}
	}
	if o.status == statusOK && o.err == nil {
		return nil
	}
	return &exit{o.status, o.err}
}

// classify gives an error its exit status.
func (x *execution) classify(o *outcome, err error) {
	o.err = err
	why, cancelled := errors.AsType[*interruption](context.Cause(x.ctx))
	wrong, known := errors.AsType[*exit](err)
	_, died := errors.AsType[*acp.ExitError](err)
	switch {
	case cancelled:
		o.status, o.err = why.status, why
	case known:
		o.status = wrong.status
	case errors.Is(err, acp.ErrAuthRequired):
		o.status = statusLogin
	case died, errors.Is(err, acp.ErrClosed):
		o.status = statusDied
	case isUsage(err), errors.Is(err, talk.ErrNoSetting), errors.Is(err, acp.ErrInvalidParams) && !isAnswer(err):
		o.status = statusUsage
	default:
		o.status = statusFailed
		if e, ok := errors.AsType[*acp.Error](err); ok && e.Error() == rpc.ErrInternal.Error() && !x.f.verbose {
			o.err = fmt.Errorf("%w; -v prints the agent's log, which may say why", err)
		}
	}
}

// isAnswer reports whether an error is the agent's response.
func isAnswer(err error) bool {
	_, answered := errors.AsType[*rpc.CallError](err)
	return answered
}

// talk opens the connection, records and judges it.
func (x *execution) talk(o *outcome) (err error) {
	opts := x.clientOptions()
	check := &liveCheck{}
	if x.f.check {
		if check, err = startCheck(&findingLines{x}, x.agent.Name, x.f.level.level); err != nil {
			return err
		}
		opts.Record = check
	}
	if x.record != "" {
		file, err := await.Do(x.ctx, 0, func() (*os.File, error) {
			return os.OpenFile(x.record, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		})
		if err != nil {
			return errors.Join(err, check.end())
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		opts.Record = io.MultiWriter(file, check)
	}
	defer func() {
		if e := check.end(); e != nil {
			err = errors.Join(err, fmt.Errorf("not fully judged: %w", e))
		} else if check.findings() > 0 && err == nil && o.status == statusOK {
			o.status = statusFindings
		}
	}()
	client, err := talk.Open(x.ctx, opts)
	if err != nil {
		return err
	}
	killing := make(chan struct{})
	stopKilling := context.AfterFunc(x.kill, func() {
		defer close(killing)
		// Close returns the same error.
		_ = client.Kill()
	})
	defer func() {
		if e := client.Close(); e != nil && err == nil {
			err = e
		}
		if !stopKilling() {
			<-killing
		}
	}()
	return x.converse(client, o)
}

// clientOptions returns the options of the client for an agent.
func (x *execution) clientOptions() *talk.Options {
	cfg := x.f.cfg
	opts := withAgent(x.options, cfg, x.agent)
	opts.AskLocal = cfg.Deny
	opts.TerminalLogin, opts.Update, opts.Event, opts.NoMask = x.tty != nil, x.update, x.event, x.f.noMask
	opts.NoReconnect, opts.CancelGrace = true, cancelGrace
	switch {
	case cfg.Allow:
		opts.Ask = func(_ context.Context, q *talk.Question) (acp.PermissionOptionID, error) {
			id, _ := allow(&q.Decision, q.Options)
			return id, nil
		}
	case x.tty != nil:
		opts.Ask = func(ctx context.Context, q *talk.Question) (acp.PermissionOptionID, error) {
			defer x.limit.asking()()
			return x.tty.ask(ctx, x, q)
		}
	}
	if x.format == formatJSON {
		opts.Line = x.line
	}
	return opts
}

// converse opens the session and sends the prompt.
func (x *execution) converse(client *talk.Client, o *outcome) (err error) {
	if method := x.f.login; method != "" {
		answered := x.limit.asking()
		err := client.Login(x.ctx, acp.AuthMethodID(method),
			launch.Terminal{Stdin: x.p.stdin, Stdout: x.p.stderr, Stderr: x.p.stderr})
		if answered(); err != nil {
			return fmt.Errorf("login %s: %w", method, err)
		}
	}
	blocks, err := x.blocks(client.Initialized().AgentCapabilities.PromptCapabilities)
	if err != nil {
		return err
	}
	session, err := x.openSession(client)
	if err != nil {
		return err
	}
	if x.lock != nil {
		defer func() { err = errors.Join(err, x.lock.Unlock()) }()
	}
	if err := choose(x.ctx, session, &x.agent.Settings); err != nil {
		return err
	}
	res, err := session.Prompt(x.ctx, blocks...)
	if x.resumed && errors.Is(err, acp.ErrResourceNotFound) && isAnswer(err) { // some agents notice only now
		err = x.cannotContinue(err)
	}
	if err != nil {
		return err
	}
	o.stop = res.StopReason
	x.awaitLate(x.ctx)
	switch why, cancelled := errors.AsType[*interruption](context.Cause(x.ctx)); {
	case cancelled:
		o.status, o.err = why.status, why
	case res.StopReason != acp.StopReasonEndTurn:
		o.status, o.err = statusRefused, fmt.Errorf("the agent stopped: %s", res.StopReason)
	default:
		if n := x.unaskedCount(); n > 0 {
			o.status = statusUnasked
			o.err = fmt.Errorf("permission requests that were rejected because no user could be asked: %d; see --policy, "+
				"--allow and --deny", n)
		}
	}
	return nil
}

// openSession opens the session: a new one, or the one with the name.
func (x *execution) openSession(client *talk.Client) (session *talk.Session, err error) {
	if x.f.session == "" {
		session, err := client.NewSession(x.ctx, "")
		if err == nil {
			x.open(session, false)
		}
		return session, err
	}
	can := client.Capabilities()
	resumes, loads := can.SessionCapabilities.Resume.Present(), can.LoadSession
	if !resumes && !loads {
		return nil, fmt.Errorf("agent %s cannot continue sessions: it supports neither session/resume nor session/load",
			x.agent.Name)
	}
	store, err := names.Default()
	if err != nil {
		return nil, err
	}
	key := names.Key{Agent: x.key, Cwd: x.options.Cwd, Name: x.f.session}
	if x.lock, err = store.Lock(key); errors.Is(err, filelock.ErrLocked) {
		return nil, fmt.Errorf("session %q is in use by another acp exec", x.f.session)
	} else if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.lock.Unlock())
		}
	}()
	id := acp.SessionID("")
	if !x.f.fresh {
		if id, err = store.Get(key); err != nil {
			return nil, x.cannotContinue(err)
		}
	}
	switch {
	case id == "":
		session, err = client.NewSession(x.ctx, "")
	case resumes:
		session, err = client.Resume(x.ctx, id, "")
	default:
		x.replay()
		session, err = client.Load(x.ctx, id, "")
	}
	if err != nil {
		if id != "" && isAnswer(err) {
			err = x.cannotContinue(err)
		}
		return nil, err
	}
	if err := store.Set(key, session.ID()); err != nil {
		return nil, err
	}
	x.open(session, id != "")
	return session, nil
}

func (x *execution) cannotContinue(err error) error {
	return fmt.Errorf("session %q cannot be continued (--new begins another one): %w", x.f.session, err)
}

// event reports events other than updates of the conversation.
func (x *execution) event(e talk.Event) {
	switch e.Kind {
	case talk.Decided:
		d := e.Decision
		why, asks := d.By.Why, d.By.Effect == policy.Ask
		_, unclear := allow(&d.By, d.Request.Options)
		if d.By.Effect == policy.Allow || asks && x.f.cfg.Allow {
			why, asks = cmp.Or(unclear, why), unclear != ""
		}
		if x.f.cfg.Allow && d.By.Effect == policy.Ask {
			why = "--allow: " + why
		}
		nobody := asks && x.tty == nil && !x.f.cfg.Deny
		x.permission(d, nobody)
		if d.Option == nil {
			x.say("permission: %s", d)
			return
		}
		x.say("permission: %s (%s)", d, why)
	case talk.Stderr:
		if strings.TrimSpace(e.Text) != "" {
			x.mu.Lock()
			x.stderr = e.Text
			x.mu.Unlock()
		}
		if x.f.verbose {
			x.warn("agent: %s", e.Text)
		}
	case talk.Slow:
		x.warn("waiting for the agent to answer %s", e.Text)
	case talk.Warning:
		x.say("warning: %v", e.Err)
	}
}

// findingLines is the writer for findings.
type findingLines struct{ x *execution }

// Write implements io.Writer. The text is already harmless.
func (l *findingLines) Write(text []byte) (int, error) {
	l.x.endLine()
	l.x.out.write(true, text)
	return len(text), nil
}
