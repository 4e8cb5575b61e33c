package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/cmd/acp/internal/names"
	"github.com/acpgo/sdk/internal/modelstub"
)

// modelFlags are the flags of a fake model.
type modelFlags struct {
	preset string   // "" means no model
	env    []string // "NAME=VALUE" with placeholders
	log    string
}

func (f *modelFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.preset, "model-stub", "", "serve a fake model on loopback for `AGENT`: "+
		strings.Join(presetNames(), ", "))
	flags.Lookup("model-stub").NoOptDefVal = anyAgent
	flags.StringArrayVar(&f.env, "model-env", nil,
		"a variable that leads the agent to the fake model, as `NAME=VALUE`; {url} is its address without a path, {home} "+
			"the agent's home")
	flags.StringVar(&f.log, "model-log", "", "record the requests to the fake model in a `FILE`, one line of JSON each")
}

// words returns the flags as words of a command line.
func (f *modelFlags) words() []string {
	var words []string
	if f.preset != "" {
		words = append(words, "--model-stub="+f.preset)
	}
	for _, variable := range f.env {
		words = append(words, "--model-env", variable)
	}
	return words
}

// anyAgent is the preset for agents without their own: it sets the variables that most agents read.
const anyAgent = "any"

// preset says how an agent is led to the fake model. In all texts {url} is replaced at once, and {home} when the agent
// is launched.
type preset struct {
	env   []string          // "NAME=VALUE"
	files map[string]string // by path in {home}
}

// ownHome makes an agent keep its files in the scenario's home.
var ownHome = names.HomeVariables("{home}")

var presets = map[string]preset{
	anyAgent: {env: []string{
		"OPENAI_BASE_URL={url}/v1", "OPENAI_API_BASE={url}/v1", "OPENAI_API_KEY=fake", "ANTHROPIC_BASE_URL={url}",
		"ANTHROPIC_API_KEY=sk-ant-fake",
		"GOOGLE_GEMINI_BASE_URL={url}", "GEMINI_API_KEY=fake",
	}},
	"claude": {env: append([]string{
		"ANTHROPIC_BASE_URL={url}", "ANTHROPIC_API_KEY=sk-ant-fake", "IS_SANDBOX=1", "DISABLE_TELEMETRY=1",
		"DISABLE_AUTOUPDATER=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CONFIG_DIR={home}/.claude",
	}, ownHome...)},
	"opencode": {
		env: append([]string{
			"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
			"OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
		}, ownHome...),
		files: map[string]string{".config/opencode/opencode.json": `{
  "autoupdate": false, "share": "disabled", "model": "fake/fake-model", "small_model": "fake/fake-model", "enabled_providers": ["fake"],
  "permission": {"edit": "ask", "bash": "ask", "read": "allow"},
  "provider": {"fake": {
    "npm": "@ai-sdk/openai-compatible", "name": "Fake", "options": {"baseURL": "{url}/v1", "apiKey": "fake"},
    "models": {"fake-model": {"name": "Fake", "tool_call": true, "limit": {"context": 200000, "output": 8000}}}
  }}
}
`},
	},
	"gemini": {
		env: append([]string{"GEMINI_API_KEY=fake", "GOOGLE_GEMINI_BASE_URL={url}", "GEMINI_MODEL=gemini-2.5-flash"},
			ownHome...),
		files: map[string]string{".gemini/settings.json": `{
  "general": {"disableAutoUpdate": true, "enableAutoUpdate": false}, "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false},
  "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}}
}
`},
	},
	"qwen": {
		env: append([]string{"OPENAI_API_KEY=fake", "OPENAI_BASE_URL={url}/v1", "OPENAI_MODEL=fake-model"}, ownHome...),
		files: map[string]string{".qwen/settings.json": `{
  "general": {"disableAutoUpdate": true, "enableAutoUpdate": false}, "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false},
  "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": false}}, "model": {"name": "fake-model"}, "tools": {"approvalMode": "default"}
}
`},
	},
}

func presetNames() []string { return slices.Sorted(maps.Keys(presets)) }

// fakeModel is a running fake model.
type fakeModel struct {
	env    []string // for the agent
	model  *modelstub.Server
	server *http.Server
	served chan error
	log    *os.File
	home   string // the template of the agents' homes
}

// check checks the flags.
func (f *modelFlags) check() error {
	if f.preset == "" && len(f.env)+len(f.log) > 0 {
		return usagef("--model-env and --model-log need a model: --model-stub")
	}
	return nil
}

// serve serves the fake model until close is called. The agents work below root.
func (f *modelFlags) serve(root string) (_ *fakeModel, err error) {
	chosen, ok := presets[f.preset]
	if !ok {
		return nil, usagef("--model-stub=%s: expected one of %s", f.preset, strings.Join(presetNames(), ", "))
	}
	for _, variable := range f.env {
		if name, _, ok := strings.Cut(variable, "="); !ok || name == "" {
			return nil, usagef("--model-env %q: expected NAME=VALUE", variable)
		}
	}
	m := &fakeModel{served: make(chan error, 1)}
	options := &modelstub.Options{Root: root}
	if f.log != "" {
		if m.log, err = os.Create(f.log); err != nil {
			return nil, err
		}
		options.Log = m.log
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	// Not in root: agents tell their model where they keep their files, and that is not where they work.
	if m.home, err = os.MkdirTemp("", "acp-model-home-"); err != nil {
		return nil, err
	}
	var listening net.ListenConfig
	listener, err := listening.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m.model = modelstub.New(options)
	m.server = &http.Server{Handler: m.model, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	go func() { m.served <- m.server.Serve(listener) }()
	fill := strings.NewReplacer("{url}", "http://"+listener.Addr().String()).Replace
	// Requests to the model must not go through a proxy.
	for _, variable := range slices.Concat([]string{"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost"},
		chosen.env, f.env) {
		m.env = append(m.env, fill(variable))
	}
	for name, text := range chosen.files {
		name = filepath.Join(m.home, filepath.FromSlash(name))
		if err = os.MkdirAll(filepath.Dir(name), 0o700); err == nil {
			err = os.WriteFile(name, []byte(fill(text)), 0o600)
		}
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

// lead adds the variables to a command that lead it to the model, unless it has its own.
func (m *fakeModel) lead(command *launch.Command) {
	env := map[string]string{}
	for _, variable := range m.env {
		name, value, _ := strings.Cut(variable, "=")
		env[name] = strings.ReplaceAll(value, "{home}", m.home)
	}
	maps.Copy(env, command.Env)
	command.Env = env
}

// close stops the model and removes the files that its agents kept.
func (m *fakeModel) close() (err error) {
	if m.server != nil {
		err = m.server.Close()
		if served := <-m.served; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, fmt.Errorf("the fake model: %w", served))
		}
	}
	if m.home != "" {
		err = errors.Join(err, os.RemoveAll(m.home))
	}
	if m.log != nil {
		err = errors.Join(err, m.log.Close())
	}
	return err
}
