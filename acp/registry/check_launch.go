package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/plain"
)

// launches starts each distribution that can be started.
func (c *checker) launches(e *Entry) {
	if len(e.Distribution.Binary) > 0 {
		c.begin(stepLaunch+"binary", "The binary for this machine starts.")
		if a, ok := e.Distribution.Binary[c.Platform]; !ok {
			c.step.Skipped = "there is no binary for " + c.Platform
		} else if err := a.usable(); err != nil { // this is reported elsewhere
			c.step.Skipped = err.Error()
		} else if c.online() {
			c.launch("/distribution/binary/"+c.Platform, a.Env, func(ctx context.Context, dir string) (*launch.Command, error) {
				return c.binaryCommand(ctx, &a, dir)
			})
		}
	}
	for _, kind := range []Kind{NPX, UVX} {
		p := e.Distribution.NPX
		if kind == UVX {
			p = e.Distribution.UVX
		}
		if p == nil {
			continue
		}
		c.begin(stepLaunch+string(kind), "The package of "+string(kind)+" starts.")
		if !c.online() {
			continue
		}
		if _, err := exec.LookPath(string(kind)); err != nil {
			c.step.Skipped = string(kind) + " is not on this machine"
			continue
		}
		words := runner(kind, p)
		c.launch("/distribution/"+string(kind), p.Env, func(_ context.Context, dir string) (*launch.Command, error) {
			return &launch.Command{Program: words[0], Args: words[1:], Dir: dir}, nil
		})
	}
	if !c.launched {
		for _, id := range []string{"REG-10", "REG-11"} {
			c.why(id, "no distribution could be started here")
		}
	}
}

// runner returns the command with which npx or uvx fetches and starts a package.
func runner(kind Kind, p *Package) []string {
	words := []string{string(kind)}
	if kind == NPX {
		words = append(words, "--yes")
	}
	if p.Cmd != "" {
		words = append(words, map[Kind]string{NPX: "--package", UVX: "--from"}[kind])
	}
	words = append(words, p.Package)
	if p.Cmd != "" {
		words = append(words, p.Cmd)
	}
	return append(words, p.Args...)
}

// binaryCommand fetches and unpacks a binary.
func (c *checker) binaryCommand(ctx context.Context, a *Archive, dir string) (*launch.Command, error) {
	archive, into := filepath.Join(dir, "archive"), filepath.Join(dir, "unpacked")
	sum, err := fetch(ctx, c.HTTP, a.Archive, true, archive, c.Limits.Archive)
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", plain.Line(a.Archive), err)
	}
	if err := a.verify(sum); err != nil {
		return nil, err
	}
	if err := os.Mkdir(into, 0o700); err != nil {
		return nil, err
	}
	i := &Installed{dir: dir, folder: "unpacked"}
	if err := i.placeArchive(ctx, archive, a, c.Limits); err != nil {
		return nil, err
	}
	command := i.Command()
	command.Dir = into
	return command, nil
}

// online reports whether launches are allowed to fetch what they need.
func (c *checker) online() bool {
	if c.Offline {
		c.step.Skipped = needsNetwork
	}
	return !c.Offline
}

// launch starts a distribution, and tries once more if that fails.
func (c *checker) launch(pointer string, env map[string]string,
	prepare func(ctx context.Context, dir string) (*launch.Command, error)) {
	began := time.Now()
	defer func() { c.step.Took = time.Since(began) }()
	c.launched = true
	c.ran("REG-10")
	var answer json.RawMessage
	var err error
	broken := false
	for range 2 {
		answer, err = c.try(env, prepare)
		if _, broken = errors.AsType[*ArchiveError](err); err == nil || broken || c.ctx.Err() != nil {
			break
		}
	}
	switch {
	case c.ctx.Err() != nil:
		c.step.Skipped = context.Cause(c.ctx).Error()
		return
	case broken:
		c.fail("REG-6", pointer, "%v", err)
		return
	case err != nil:
		c.fail("REG-10", pointer, "%v", err)
		return
	}
	c.ran("REG-11")
	if why := wrongMethods(answer); why != "" {
		c.fail("REG-11", pointer, "%s", why)
	}
}

// initialize is the request that the registry's own check sends.
const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"acp-registry-check","version":"1"},"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"_meta":{"terminal-auth":true}}}}`

// try starts a distribution with its own directory and home, and returns its answer to initialize.
func (c *checker) try(env map[string]string, prepare func(ctx context.Context, dir string) (*launch.Command, error)) (
	_ json.RawMessage, err error) {
	ctx, cancel := context.WithTimeoutCause(c.ctx, c.Time, fmt.Errorf("no answer within %v", c.Time))
	defer cancel()
	dir, err := os.MkdirTemp("", "acp-registry-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	command, err := prepare(ctx, dir)
	if err != nil {
		return nil, causeOf(ctx, err)
	}
	command.Environ, command.Env = environment(home), env
	transport := rpc.Command(command.Cmd())
	transport.StopTime, transport.KillTime = c.EndTime, c.EndTime
	stream, err := transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	type outcome struct {
		answer json.RawMessage
		err    error
	}
	asked, ended := make(chan outcome, 1), make(chan bool)
	go func() {
		defer close(ended)
		answer, err := askInitialize(stream)
		asked <- outcome{answer, err}
		for err == nil { // the end of the output is part of the end of the agent
			_, err = stream.Read()
		}
	}()
	var out outcome
	select {
	case out = <-asked:
	case <-ctx.Done():
		out.err = context.Cause(ctx)
	}
	_ = stream.Close() // the way the agent ends does not matter here
	<-ended
	said, _ := rpc.ProcessOutputOf(stream)
	if err := out.err; err != nil {
		if stderr := strings.TrimSpace(said.Stderr); stderr != "" {
			c.step.Stderr = stderr
			if problem, ok := launch.Explain(stderr); ok {
				return nil, fmt.Errorf("%w; %s", err, problem.Text)
			}
			if _, exited := errors.AsType[*rpc.ExitError](err); !exited { // an ExitError includes it
				lines := strings.Split(stderr, "\n")
				err = fmt.Errorf("%w; standard error ends with: %s", err, short(lines[len(lines)-1]))
			}
		}
		return nil, err
	}
	return out.answer, nil
}

// askInitialize sends the initialize request, and reads the answer.
func askInitialize(stream rpc.Stream) (json.RawMessage, error) {
	if err := stream.Write([]byte(initialize)); err != nil {
		return nil, fmt.Errorf("writing to its input: %w", err)
	}
	for first := true; ; first = false {
		line, err := stream.Read()
		if err != nil {
			return nil, fmt.Errorf("no answer to initialize: %w", err)
		}
		var m struct {
			ID, Result, Error json.RawMessage
		}
		if json.Unmarshal(line, &m) != nil {
			if first {
				return nil, fmt.Errorf("the first line of its output is not JSON: %q", short(line))
			}
			continue
		}
		if string(m.ID) != "1" {
			continue
		}
		if members(m.Result) == nil {
			return nil, fmt.Errorf("unexpected answer to initialize: %s", short(line))
		}
		return append(json.RawMessage(nil), m.Result...), nil
	}
}

// wrongMethods returns the reason why the authentication methods of an answer do not satisfy the registry.
func wrongMethods(answer json.RawMessage) string {
	var methods []struct {
		Type *string
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	text := members(answer)["authMethods"]
	if text == nil || string(text) == "null" {
		return "authMethods is missing: the registry requires one of type agent or terminal, even if the agent needs no login"
	}
	if err := json.Unmarshal(text, &methods); err != nil {
		return fmt.Sprintf("authMethods: %v", err)
	}
	var types []string
	for _, m := range methods {
		switch {
		case m.Type == nil, *m.Type == "agent", *m.Type == "terminal", m.Meta["terminal-auth"] != nil,
			m.Meta["agent-auth"] != nil:
			return ""
		}
		types = append(types, *m.Type)
	}
	if len(types) == 0 {
		return "authMethods is empty: the registry requires one of type agent or terminal, even if the agent needs no login"
	}
	return fmt.Sprintf("authMethods has only the types %s, and none of agent and terminal", strings.Join(types, ", "))
}

// passed are the variables that a launch inherits from this process: those for finding programs and for reaching the
// network.
var passed = []string{
	"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "npm_config_registry", "NPM_CONFIG_REGISTRY", "UV_INDEX_URL",
	"UV_DEFAULT_INDEX", "UV_PYTHON",
	"SystemRoot", "SystemDrive", "ComSpec", "PATHEXT", "TEMP", "TMP", "WINDIR", "NUMBER_OF_PROCESSORS",
	"PROCESSOR_ARCHITECTURE",
}

// environment returns a clean environment.
func environment(home string) []string {
	env := []string{"HOME=" + home, "TERM=dumb"}
	if runtime.GOOS == "windows" {
		env = append(env, "USERPROFILE="+home, "APPDATA="+filepath.Join(home, "AppData", "Roaming"), "LOCALAPPDATA="+
			filepath.Join(home, "AppData", "Local"))
	}
	for _, name := range passed {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
