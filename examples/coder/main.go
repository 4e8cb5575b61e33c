// Command coder is a coding agent: a language model with tools, for clients of the Agent Client Protocol. It uses the API of
// OpenAI, which most servers of local models offer too, or that of Anthropic. See docs/coder.md.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/contrib/mcpacp"
)

const name = "coder"

// agent is the state that all sessions share.
type agent struct {
	api, model, keyFile string
	images              bool
	window, thinking    int64
	priceIn, priceOut   float64 // in USD, per million tokens
	patience            time.Duration
	maxRequests         int

	rules     *policy.Policy
	memory    *policy.File
	roots     *local.Roots
	terminals *local.Terminals

	mu       sync.Mutex
	provider provider // nil until there is a key
}

func main() {
	a := &agent{}
	dir := flag.String("state", "", "directory for sessions, rules and the key (default: in the user's directory for state)")
	login := flag.Bool("login", false, "read an API key from standard input, store it, and end")
	flag.StringVar(&a.api, "api", "", "openai or anthropic (default: the one whose variables are set)")
	flag.StringVar(&a.model, "model", "", "the first choice of the model (default: the first that the API lists)")
	flag.BoolVar(&a.images, "images", true, "whether the model accepts images")
	flag.Int64Var(&a.window, "context", 0, "tokens of the model's context (default: what the API says, or 128000)")
	flag.Int64Var(&a.thinking, "thinking", 0, "tokens that a model of Anthropic may think; 0 is off")
	flag.Float64Var(&a.priceIn, "price-in", 0, "price of a million tokens of input, in USD")
	flag.Float64Var(&a.priceOut, "price-out", 0, "price of a million tokens of output, in USD")
	flag.DurationVar(&a.patience, "patience", 5*time.Minute, "how long the API may be silent")
	flag.IntVar(&a.maxRequests, "max-requests", 100, "requests to the model in one turn")
	flag.Parse()
	if err := a.run(*dir, *login); err != nil {
		log.Fatal(name, ": ", err)
	}
}

func (a *agent) run(dir string, login bool) (err error) {
	if dir == "" {
		if dir, err = sessionstore.DefaultDir("acp-coder"); err != nil {
			return err
		}
	}
	set := func(name string) bool { return os.Getenv(name) != "" }
	if a.api == "" && set("ANTHROPIC_API_KEY") && !set("OPENAI_API_KEY") && !set("OPENAI_BASE_URL") {
		a.api = "anthropic"
	}
	a.api = cmp.Or(a.api, "openai")
	if a.api != "openai" && a.api != "anthropic" {
		return fmt.Errorf("-api %q: want openai or anthropic", a.api)
	}
	a.model = cmp.Or(a.model, os.Getenv(strings.ToUpper(a.api)+"_MODEL"))
	store, err := sessionstore.Open(dir, nil)
	if err != nil {
		return err
	}
	a.keyFile = filepath.Join(dir, a.api+".key")
	if login {
		return errors.Join(a.readKey(), store.Close())
	}
	a.memory = policy.NewFile(filepath.Join(dir, "rules.json"))
	if a.rules, err = policy.New(nil, &policy.Options{Resolve: policy.ResolveLinks}); err != nil {
		return err
	}
	if a.roots, err = local.OpenRoots(); err != nil {
		return err
	}
	a.terminals = local.NewTerminals(a.roots, &local.TerminalsOptions{Env: environ()})
	sessions := agentkit.NewSessions(agentkit.Config[state]{
		Store: store, Open: a.open, Prompt: a.prompt, Commands: a.commands(), Policy: a.decide, Login: a.login(),
		ToolError: func(_ acp.ToolCall, err error) string { return err.Error() },
		WhileBusy: agentkit.Steer, Fork: true, Extend: mcpacp.Enable,
	})
	opts := &acp.AgentOptions{Info: acp.Implementation{Name: name, Title: acp.Some("Coder"), Version: "1.0"}}
	opts.AdditionalDirectories = true
	opts.Prompt = acp.PromptCapabilities{Image: a.images, EmbeddedContext: true}
	err = sessions.Serve(context.Background(), acp.Stdio(), opts)
	return errors.Join(err, a.terminals.Close(), a.roots.Close(), store.Close())
}

// login offers two ways to log in: a terminal, and the environment in which the agent is started.
func (a *agent) login() *agentkit.Login {
	variable := strings.ToUpper(a.api) + "_API_KEY"
	ready := func(context.Context, *acp.AgentConn) (bool, error) { return a.connect() != nil, nil }
	return &agentkit.Login{
		Methods: []acp.AuthMethod{
			acp.NewAuthMethodTerminal(acp.AuthMethodTerminal{ID: "terminal", Name: "Enter an API key", Args: []string{"-login"}}),
			acp.NewAuthMethodAgent(acp.AuthMethodAgent{
				ID: "environment", Name: "Use " + variable, Description: acp.Some("Start the agent with this variable in its environment."),
			}),
		},
		Valid: ready,
		Run: func(context.Context, *acp.AgentConn, acp.AuthMethodID) error {
			if a.connect() == nil {
				return acp.Public(fmt.Errorf("%s is not set: set it, and start the agent again", variable))
			}
			return nil
		},
		Logout: func(context.Context, *acp.AgentConn) error {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.provider = nil
			if err := os.Remove(a.keyFile); !errors.Is(err, os.ErrNotExist) {
				return err
			}
			return nil
		},
	}
}

// connect returns the provider, or nil if there is no key for it yet.
func (a *agent) connect() provider {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.provider == nil {
		key := os.Getenv(strings.ToUpper(a.api) + "_API_KEY")
		if stored, err := os.ReadFile(a.keyFile); err == nil && key == "" {
			key = strings.TrimSpace(string(stored))
		}
		if key == "" && a.api == "openai" && os.Getenv("OPENAI_BASE_URL") != "" {
			key = "none" // a local server needs none
		}
		switch {
		case key == "":
		case a.api == "openai":
			a.provider = newOpenAI(key)
		default:
			a.provider = newAnthropic(key, a.thinking)
		}
	}
	return a.provider
}

func (a *agent) readKey() error {
	fmt.Fprint(os.Stderr, "API key: ")
	key, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if key = strings.TrimSpace(key); key == "" {
		return fmt.Errorf("no key: %w", err)
	}
	return os.WriteFile(a.keyFile, []byte(key+"\n"), 0o600)
}

// environ returns the environment of commands, without the keys.
func environ() (env []string) {
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "OPENAI_API_KEY=") && !strings.HasPrefix(variable, "ANTHROPIC_API_KEY=") {
			env = append(env, variable)
		}
	}
	return env
}
