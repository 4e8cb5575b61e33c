package agentkit

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/secretfile"
)

// APIKey is where an agent finds the key of its model's API: in an environment variable, or in a file where a login has
// stored it.
type APIKey struct {
	Variable string // such as OPENAI_API_KEY
	File     string // is created by Enter; only its owner can access it; "" means that no key is stored
	Default  string // the key if there is no other, for servers that require none
}

// Get returns the key: the variable's value or otherwise the file's content or Default. It is "" if there is none. A
// file that everybody can read, or others can write to, is refused.
func (k APIKey) Get() (string, error) {
	if key := os.Getenv(k.Variable); key != "" {
		return key, nil
	}
	if info, err := os.Stat(k.File); err == nil { // reading it reports the error
		if err := secretfile.Check(k.File, info); err != nil {
			return "", err
		}
	}
	stored, err := os.ReadFile(k.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return cmp.Or(strings.TrimSpace(string(stored)), k.Default), nil
}

// Enter prompts for a key on out, reads a line from in, and stores it in the file. The arguments that are passed to
// Login should make the program call Enter with its standard streams. A terminal shows the key as it is typed.
func (k APIKey) Enter(in io.Reader, out io.Writer) error {
	if k.File == "" {
		return fmt.Errorf("there is no place to store the key: set %s", k.Variable)
	}
	if _, err := fmt.Fprint(out, "API key: "); err != nil {
		return err
	}
	key, err := bufio.NewReader(in).ReadString('\n')
	if key = strings.TrimSpace(key); key == "" {
		return fmt.Errorf("no key: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(k.File), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(k.File, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = file.Chmod(0o600) // of a file that was there before
	if err == nil {
		_, err = file.WriteString(key + "\n")
	}
	return errors.Join(err, file.Close())
}

// Login returns a value for Config.Login that requires the key and offers two ways to provide it: the client runs the
// agent with args in a terminal, and the program calls Enter, if there is a File; or the user starts the agent with the
// variable in its environment. A logout deletes the file.
func (k APIKey) Login(args ...string) *Login {
	valid := func(context.Context, *acp.AgentConn) (bool, error) {
		key, err := k.Get()
		return key != "", err
	}
	methods := []acp.AuthMethod{acp.NewAuthMethodAgent(acp.AuthMethodAgent{
		ID: "environment", Name: "Use " + k.Variable,
		Description: acp.Some("Start the agent with this variable in its environment."),
	})}
	if k.File != "" {
		terminal := acp.NewAuthMethodTerminal(acp.AuthMethodTerminal{ID: "terminal", Name: "Enter an API key", Args: args})
		methods = slices.Insert(methods, 0, terminal)
	}
	return &Login{
		Methods: methods,
		Valid:   valid,
		Run: func(ctx context.Context, conn *acp.AgentConn, _ acp.AuthMethodID) error {
			if ok, err := valid(ctx, conn); ok || err != nil {
				return err
			}
			return acp.Public(fmt.Errorf("%s is not set: set it, and start the agent again", k.Variable))
		},
		Logout: func(context.Context, *acp.AgentConn) error {
			if err := os.Remove(k.File); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		},
	}
}
