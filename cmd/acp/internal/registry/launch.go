// The launches: each distribution that this machine can run, as the registry's own check starts it.

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

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/cmd/acp/internal/launch"
)

// launches starts all that can be started.
func (c *checker) launches(e *entry) {
	if len(e.binary) > 0 {
		c.begin(partLaunch+"binary", "The binary for this machine starts.")
		if d := e.binary[c.Platform]; d == nil {
			c.part.Skipped = "there is no binary for " + c.Platform
		} else if c.online() {
			c.launch(d, func(ctx context.Context, dir string) (*launch.Command, error) {
				name, err := c.unpack(ctx, d, dir)
				if err != nil {
					return nil, err
				}
				return &launch.Command{Args: append([]string{name}, d.args...), Dir: filepath.Join(dir, "unpacked")}, nil
			})
		}
	}
	for _, x := range []struct {
		kind string
		d    *distribution
		all  []string // the words before the package
		with []string // the same if there is a command
	}{
		{"npx", e.npx, []string{"--yes"}, []string{"--yes", "--package"}},
		{"uvx", e.uvx, nil, []string{"--from"}},
	} {
		if x.d == nil {
			continue
		}
		c.begin(partLaunch+x.kind, "The package of "+x.kind+" starts.")
		if !c.online() {
			continue
		}
		if _, err := exec.LookPath(x.kind); err != nil {
			c.part.Skipped = x.kind + " is not on this machine"
			continue
		}
		words := append([]string{x.kind}, x.all...)
		if x.d.cmd != "" {
			words = append([]string{x.kind}, x.with...)
		}
		words = append(words, x.d.pkg)
		if x.d.cmd != "" {
			words = append(words, x.d.cmd)
		}
		words = append(words, x.d.args...)
		c.launch(x.d, func(_ context.Context, dir string) (*launch.Command, error) {
			return &launch.Command{Args: words, Dir: dir}, nil
		})
	}
	if !c.launched {
		for _, id := range []string{"REG-10", "REG-11"} {
			c.why(id, "no distribution could be started here")
		}
	}
}

// online reports whether launches are allowed to fetch what they need.
func (c *checker) online() bool {
	if c.Offline {
		c.part.Skipped = "it needs the network"
	}
	return !c.Offline
}

// launch starts a distribution, once more if that fails.
func (c *checker) launch(d *distribution, prepare func(ctx context.Context, dir string) (*launch.Command, error)) {
	began := time.Now()
	defer func() { c.part.Seconds = time.Since(began).Seconds() }()
	c.launched = true
	c.ran("REG-10")
	var answer json.RawMessage
	var err error
	for range 2 {
		answer, err = c.try(d, prepare)
		if _, broken := errors.AsType[brokenArchive](err); err == nil || broken || c.ctx.Err() != nil {
			break
		}
	}
	switch {
	case c.ctx.Err() != nil:
		c.part.Skipped = context.Cause(c.ctx).Error()
		return
	case err != nil:
		if _, broken := errors.AsType[brokenArchive](err); broken {
			c.fail("REG-6", d.pointer, "%v", err)
		} else {
			c.fail("REG-10", d.pointer, "%v", err)
		}
		return
	}
	c.ran("REG-11")
	if why := wrongMethods(answer); why != "" {
		c.fail("REG-11", d.pointer, "%s", why)
	}
}

// initialize is what the registry's check sends.
const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"acp-registry-check","version":"1"},"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"_meta":{"terminal-auth":true}}}}`

// try starts a distribution in a folder and a home of its own, and returns its answer to initialize.
func (c *checker) try(d *distribution, prepare func(ctx context.Context, dir string) (*launch.Command, error)) (_ json.RawMessage, err error) {
	ctx, cancel := context.WithTimeoutCause(c.ctx, c.Time, fmt.Errorf("it has not answered within %v", c.Time))
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
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return nil, err
	}
	command.Environ, command.Env, command.Rung = environment(home, d.env), nil, c.Rung
	if err := command.Resolve(); err != nil {
		return nil, err
	}
	target, err := command.Launch(ctx, dir)
	if err != nil {
		return nil, err
	}
	type outcome struct {
		answer json.RawMessage
		err    error
	}
	asked := make(chan outcome, 1)
	go func() {
		answer, err := ask(target.Stream)
		asked <- outcome{answer, err}
	}()
	var out outcome
	late := false
	select {
	case out = <-asked:
	case <-ctx.Done():
		late = true
	}
	if half, ok := target.Stream.(rpc.HalfCloser); ok && out.err == nil && !late {
		_ = half.CloseWrite() // it may have ended already, which is no fault
	}
	_ = target.Stream.Close() // how it ends is no matter of this check
	if late {
		<-asked // the end of the stream ends it
		out.err = context.Cause(ctx)
	}
	if err := out.err; err != nil {
		if stderr := strings.TrimSpace(target.Stderr.String()); stderr != "" {
			c.part.Stderr = stderr
			lines := strings.Split(stderr, "\n")
			err = fmt.Errorf("%w; it says: %s", err, lines[len(lines)-1])
		}
		return nil, err
	}
	return out.answer, nil
}

// ask initializes, and reads the answer.
func ask(stream rpc.Stream) (json.RawMessage, error) {
	if err := stream.Write([]byte(initialize)); err != nil {
		return nil, fmt.Errorf("it reads nothing: %w", err)
	}
	for first := true; ; first = false {
		line, err := stream.Read()
		if err != nil {
			return nil, fmt.Errorf("it has not answered initialize: %w", err)
		}
		var m struct {
			ID, Result, Error json.RawMessage
		}
		if json.Unmarshal(line, &m) != nil {
			if first {
				return nil, fmt.Errorf("the first line of its output is no JSON: %q", short(line))
			}
			continue
		}
		if string(m.ID) != "1" {
			continue
		}
		if members(m.Result) == nil {
			return nil, fmt.Errorf("initialize is answered with %s", short(line))
		}
		return append(json.RawMessage(nil), m.Result...), nil
	}
}

// short is the beginning of a line.
func short(line []byte) string {
	const most = 200
	if len(line) > most {
		return strings.ToValidUTF8(string(line[:most]), "") + "…"
	}
	return string(line)
}

// wrongMethods says why the ways to authenticate of an answer are not what the registry wants.
func wrongMethods(answer json.RawMessage) string {
	var methods []struct {
		Type *string
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	text := members(answer)["authMethods"]
	if text == nil || string(text) == "null" {
		return "authMethods is left out: the registry wants one of the type agent or terminal, also of agents that need no login"
	}
	if err := json.Unmarshal(text, &methods); err != nil {
		return fmt.Sprintf("authMethods: %v", err)
	}
	var types []string
	for _, m := range methods {
		switch {
		case m.Type == nil, *m.Type == "agent", *m.Type == "terminal", m.Meta["terminal-auth"] != nil, m.Meta["agent-auth"] != nil:
			return ""
		}
		types = append(types, *m.Type)
	}
	if len(types) == 0 {
		return "authMethods is empty: the registry wants one of the type agent or terminal, also of agents that need no login"
	}
	return fmt.Sprintf("authMethods has only the types %s, and none of agent and terminal", strings.Join(types, ", "))
}

// passed are the variables that a launch takes from this process: where programs are, and how the network is reached.
var passed = []string{
	"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "npm_config_registry", "NPM_CONFIG_REGISTRY", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_PYTHON",
	"SystemRoot", "SystemDrive", "ComSpec", "PATHEXT", "TEMP", "TMP", "WINDIR", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE",
}

// environment is a clean one.
func environment(home string, more map[string]string) []string {
	env := []string{"HOME=" + home, "TERM=dumb"}
	if runtime.GOOS == "windows" {
		env = append(env, "USERPROFILE="+home, "APPDATA="+filepath.Join(home, "AppData", "Roaming"), "LOCALAPPDATA="+filepath.Join(home, "AppData", "Local"))
	}
	for _, name := range passed {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for _, name := range sorted(more) {
		env = append(env, name+"="+more[name])
	}
	return env
}
