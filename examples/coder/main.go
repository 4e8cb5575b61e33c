// Command coder is a coding agent: a language model with tools, for clients of the Agent Client Protocol. It uses the
// API of OpenAI, which most servers of local models offer too, or that of Anthropic. See docs/coder.md.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/contrib/mcpacp"
)

const name = "coder"

// agent is what all sessions share.
type agent struct {
	api, model        string
	images            bool
	window, thinking  int64
	priceIn, priceOut float64 // in USD, per million tokens
	patience          time.Duration
	maxRequests       int

	dir string // for sessions, rules and the key; "" if there is none
	key agentkit.APIKey
}

func main() {
	if err := run(); err != nil {
		log.Fatal(name, ": ", err)
	}
}

func run() error {
	a, api := &agent{}, "openai"
	set := func(name string) bool { return os.Getenv(name) != "" }
	if set("ANTHROPIC_API_KEY") && !set("OPENAI_API_KEY") && !set("OPENAI_BASE_URL") {
		api = "anthropic"
	}
	login := flag.Bool("login", false, "read an API key from standard input, store it, and end")
	in := flag.String("state", "",
		"directory for sessions, rules and the key (default: in the user's directory for state)")
	flag.StringVar(&a.api, "api", api, "openai or anthropic; the default is the one whose variables are set")
	flag.StringVar(&a.model, "model", "", "the first choice of the model (default: the first that the API lists)")
	flag.BoolVar(&a.images, "images", true, "whether the model accepts images")
	flag.Int64Var(&a.window, "context", 0, "tokens of the model's context (default: what the API says, or 128000)")
	flag.Int64Var(&a.thinking, "thinking", 0, "tokens that a model of Anthropic may think; 0 is off")
	flag.Float64Var(&a.priceIn, "price-in", 0, "price of a million tokens of input, in USD")
	flag.Float64Var(&a.priceOut, "price-out", 0, "price of a million tokens of output, in USD")
	flag.DurationVar(&a.patience, "patience", 5*time.Minute, "how long the API may be silent")
	flag.IntVar(&a.maxRequests, "max-requests", 100, "requests to the model in one turn")
	flag.Parse()
	if a.api != "openai" && a.api != "anthropic" {
		return fmt.Errorf("-api %q: expected openai or anthropic", a.api)
	}
	prefix := strings.ToUpper(a.api)
	a.model = cmp.Or(a.model, os.Getenv(prefix+"_MODEL"))
	store, used, err := sessionstore.OpenApp("acp-coder", *in, nil)
	if err != nil {
		return err
	}
	a.dir = used
	a.key = agentkit.APIKey{Variable: prefix + "_API_KEY"}
	if a.dir != "" {
		a.key.File = filepath.Join(a.dir, a.api+".key")
	}
	if a.api == "openai" && set("OPENAI_BASE_URL") {
		a.key.Default = "none" // a local server needs no key
	}
	if *login {
		return errors.Join(a.key.Enter(os.Stdin, os.Stderr), store.Close())
	}
	sessions := agentkit.NewSessions(agentkit.Config[state]{
		Store: store, Open: a.open, Prompt: a.prompt, Commands: a.commands(), Login: a.key.Login("-login"),
		Decide: policy.ForAgent(name, a.dir), WhileBusy: agentkit.Steer, Fork: true, Extend: mcpacp.Enable,
	})
	opts := &acp.AgentOptions{Info: acp.Implementation{Name: name, Title: acp.Some("Coder"), Version: "1.0"}}
	opts.AdditionalDirectories = true
	opts.Prompt = acp.PromptCapabilities{Image: a.images, EmbeddedContext: true}
	return errors.Join(sessions.Serve(context.Background(), acp.Stdio(), opts), store.Close())
}
