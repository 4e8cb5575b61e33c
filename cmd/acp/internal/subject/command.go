// Package subject starts the programs that probes examine, and ends them together with all processes that they started.
package subject

import (
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/conformance/probe"
)

// Command is a program to start.
type Command struct {
	Args []string
	// Env lists additional environment variables, "NAME=VALUE". {home} stands for the scenario's home. DirWord stands
	// for the scenario's directory, also in Args.
	Env []string
	// Home is the home of all scenarios. If it is "", each scenario has its own, into which Template is copied if that
	// is a directory.
	Home, Template string
	// Dir is the working directory; "" means that of this process.
	Dir string
	// Rung is how long the program may take to end after it was asked to, before it is killed.
	Rung time.Duration
	// MaxMessage is the maximum length of a message in bytes; 0 means the default of package rpc.
	MaxMessage int
}

// mark is the environment variable that identifies processes that have left the process group of the program.
const mark = "ACP_PROBE_LAUNCH"

// Resolve looks up the program, so that it is found whatever directory it starts in.
func (c *Command) Resolve() error {
	path, err := exec.LookPath(c.Args[0])
	if err != nil {
		return err
	}
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	c.Args = slices.Clone(c.Args)
	c.Args[0] = path
	if c.Dir == "" {
		return nil
	}
	return input.Folder(c.Dir)
}

// home returns the home for the scenario that works in a directory.
func (c *Command) home(dir string) (string, error) {
	if c.Home != "" {
		return filepath.Abs(c.Home)
	}
	home := probe.Home(dir)
	left, err := os.ReadDir(home)
	if err == nil && len(left) == 0 && c.Template != "" {
		err = os.CopyFS(home, os.DirFS(c.Template))
	}
	return home, err
}

// homeEnv returns the variables by which programs find their home. Downloads are shared: the caches stay where they
// are.
func homeEnv(home string) []string {
	env := []string{
		"HOME=" + home, "USERPROFILE=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, ".config"),
		"XDG_DATA_HOME=" + filepath.Join(home, ".local", "share"), "XDG_STATE_HOME=" + filepath.Join(home, ".local", "state"),
	}
	if cache, err := os.UserCacheDir(); err == nil {
		env = append(env, "XDG_CACHE_HOME="+cache)
	}
	if own, err := os.UserHomeDir(); err == nil && os.Getenv("npm_config_cache") == "" {
		env = append(env, "npm_config_cache="+filepath.Join(own, ".npm"))
	}
	return env
}

// Launch starts the program.
func (c *Command) Launch(ctx context.Context, dir string) (*probe.Target, error) {
	var words []string
	for _, word := range c.Args {
		words = append(words, strings.ReplaceAll(word, DirWord, dir))
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = c.Dir
	id := mark + "=" + rand.Text()
	home, err := c.home(dir)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(os.Environ(), homeEnv(home)...)
	for _, variable := range c.Env {
		cmd.Env = append(cmd.Env, strings.NewReplacer("{home}", home, DirWord, dir).Replace(variable))
	}
	cmd.Env = append(cmd.Env, id)
	transport := rpc.Command(cmd)
	// The probe itself ends the input, and waits for what follows.
	transport.StopTime, transport.KillTime, transport.MaxMessage = time.Nanosecond, c.Rung, c.MaxMessage
	stderr := &probe.Stderr{}
	cmd.Stderr = stderr
	inner, err := transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	stream := rpc.Wrap(inner, rpc.Wrapper{Close: func() error {
		err := inner.Close()
		sweep(id)
		return err
	}})
	return &probe.Target{Stream: stream, Stderr: stderr, Raw: inner.(rpc.FastStream).WriteLines, Process: true}, nil
}
