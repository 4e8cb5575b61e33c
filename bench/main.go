// Command bench runs the same conversations with this library and with others, in rounds in which they take turns, and
// prints one table. It is a separate module, so that users of this library do not depend on the others.
//
//	go run . -rounds 10 -o ../docs/reference/benchmarks.md
//
// Each conversation is between a client in a separate process and the agent that it starts: this program again, in
// other roles, or Node with the programs in typescript. A single conversation can be run like this:
//
//	go build -o /tmp/bench . && /tmp/bench -role client \
//		'{"Script":{"Updates":1000,"Size":64},"Time":3000000000}' /tmp/bench -role agent
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	role := flag.String("role", "", "what to be: client or agent; empty: run the benchmarks")
	name := flag.String("library", nameACP, "of a client or agent")
	var b bench
	b.flags()
	flag.Parse()
	if *role == "" {
		return b.run()
	}
	lib, err := libraryNamed(*name)
	if err != nil {
		return err
	}
	switch {
	case *role == "agent":
		return lib.serve(context.Background(), stdio())
	case *role == "client" && flag.NArg() >= 2:
		var conv conversation
		if err := json.Unmarshal([]byte(flag.Arg(0)), &conv); err != nil {
			return err
		}
		fmt.Printf("%s\n", asJSON(converse(lib, conv, flag.Args()[1:])))
		return nil
	}
	return errors.New("usage: bench | bench -role agent | bench -role client CONVERSATION AGENT [ARG...]")
}
