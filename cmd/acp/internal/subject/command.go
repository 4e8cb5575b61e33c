// Package subject starts the programs that probes examine, and ends them with all that they have started.
package subject

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance/probe"
)

// Command is a program to start.
type Command struct {
	Args []string
	// Env are variables beside those of this process, "NAME=VALUE". {home} is the home of the scenario.
	Env []string
	// Home is the home of all scenarios; "" gives each one of its own, into which Template is copied, if that is a folder.
	Home, Template string
	// Dir is where it starts; "" is where this process is.
	Dir string
	// Rung is how long it may take to end after it was asked to, before it is killed.
	Rung time.Duration
	// MaxMessage bounds a message, in bytes; 0 is that of package rpc.
	MaxMessage int
}

// mark is the variable by which processes are found that have left the group of the one that was started.
const mark = "ACP_PROBE_LAUNCH"

// Resolve finds the program, so that it is found wherever it starts.
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
	info, err := os.Stat(c.Dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder", c.Dir)
	}
	return err
}

// home is the home for the scenario that works in a folder.
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

// homeEnv are the variables by which programs find a home. What they have fetched is shared: the caches stay where they are.
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

// Launch starts it.
func (c *Command) Launch(ctx context.Context, dir string) (*probe.Target, error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Dir = c.Dir
	id := mark + "=" + rand.Text()
	home, err := c.home(dir)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(os.Environ(), homeEnv(home)...)
	for _, variable := range c.Env {
		cmd.Env = append(cmd.Env, strings.ReplaceAll(variable, "{home}", home))
	}
	cmd.Env = append(cmd.Env, id)
	transport := rpc.Command(cmd)
	// The end of the input comes from the probe, which waits for what follows.
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
