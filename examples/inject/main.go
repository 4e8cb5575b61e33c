// Command inject adds the text of a file to every prompt, for any agent: inject -file NOTES.md -- AGENT [arguments].
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/proxy"
	"github.com/acpgo/sdk/acp/rpc"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("inject: ")
	file := flag.String("file", "", "the `file` to add, read for each prompt")
	flag.Parse()
	if *file == "" {
		log.Fatal("expected -file")
	}
	var agent rpc.Transport // without one, this is a component that a conductor starts
	if flag.NArg() > 0 {
		cmd := exec.Command(flag.Arg(0), flag.Args()[1:]...)
		cmd.Stderr = os.Stderr
		agent = rpc.Command(cmd)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := proxy.Serve(ctx, rpc.Stdio(), agent, inject(*file), nil); err != nil {
		log.Fatal(err)
	}
}

// inject adds a file to every prompt, after what the user has said, which may begin with a command. The prompt fails if
// the file cannot be read.
func inject(file string) proxy.Hooks {
	return proxy.Hooks{Prompt: func(ctx context.Context, req *acp.PromptRequest,
		next func(context.Context, *acp.PromptRequest) (*acp.PromptResponse, error),
	) (*acp.PromptResponse, error) {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, rpc.Public(err)
		}
		req.Prompt = append(req.Prompt, acp.TextBlock("\n\nContext from "+file+":\n"+string(text)))
		return next(ctx, req)
	}}
}
