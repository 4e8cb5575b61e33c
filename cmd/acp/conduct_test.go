package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/acpgo/sdk/acp/proxy"
	"github.com/acpgo/sdk/acp/rpc"
)

// passer is a proxy that changes nothing. Its arguments, which it says on standard error, have it end or hang at its
// first message.
func passer() {
	args := os.Args[1:]
	if len(args) > 0 {
		fmt.Fprintf(os.Stderr, "passer: %q\n", args)
	}
	switch {
	case slices.Contains(args, "die"):
		bufio.NewScanner(os.Stdin).Scan()
		os.Exit(7)
	case slices.Contains(args, "hang"):
		io.Copy(io.Discard, os.Stdin)
	default:
		if err := proxy.Serve(context.Background(), rpc.Stdio(), nil, proxy.Hooks{}, nil); err != nil {
			fmt.Fprintln(os.Stderr, "passer:", err)
			os.Exit(1)
		}
	}
}
