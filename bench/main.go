// Command bench runs the same conversations with this library and with others, in rounds in which they take turns, and
// prints one table. It is a separate module, so that users of this library do not depend on the others.
//
//	go run . -rounds 10 -o ../docs/reference/benchmarks.md
//
// Each conversation is between a client in a separate process and the agent that it starts: this program again, in
// other roles, or Node with the programs in typescript. A single conversation can be run like this:
//
//	go build -o /tmp/bench . && /tmp/bench -role client -cpuprofile client.prof \
//		'{"Script":{"Updates":1000,"Size":64},"Time":3000000000}' /tmp/bench -role agent -cpuprofile agent.prof
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	role := flag.String("role", "", "what to be: client, agent, codec; empty: run the benchmarks")
	name := flag.String("library", nameACP, "of a client or agent")
	profile := flag.String("cpuprofile", "", "of a client or agent: write a profile of this process")
	var b bench
	b.flags()
	flag.Parse()
	if *role == "" {
		return b.run()
	}
	if *profile != "" {
		stop, err := startProfile(*profile)
		if err != nil {
			return err
		}
		defer stop()
	}
	switch *role {
	case "agent":
		return serve(*name)
	case "client":
		return printResult(func(conv conversation) (result, error) {
			lib, err := libraryNamed(*name)
			if err != nil || flag.NArg() < 2 {
				return result{}, errors.Join(err, errUsage)
			}
			return converse(lib, conv, flag.Args()[1:]), nil
		})
	case "codec":
		return printResult(func(c coding) (result, error) { return c.measure(*name) })
	}
	return errUsage
}

var errUsage = errors.New("usage: bench | bench -role agent | bench -role client CONVERSATION AGENT [ARG]... | bench " +
	"-role codec CODING")

// printResult runs the task in the first argument, and prints its result.
func printResult[T task](do func(T) (result, error)) error {
	var t T
	if err := json.Unmarshal([]byte(flag.Arg(0)), &t); err != nil {
		return errors.Join(err, errUsage)
	}
	r, err := do(t)
	if err == nil {
		fmt.Printf("%s\n", asJSON(r))
	}
	return err
}

// serve is the agent of a library.
func serve(name string) error {
	lib, err := libraryNamed(name)
	if err != nil {
		return err
	}
	return lib.serve(context.Background(), stdio())
}

func startProfile(path string) (stop func(), err error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		if err := file.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	}, nil
}
