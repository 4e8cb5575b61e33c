package rpc_test

import (
	"context"
	"fmt"
	"log"

	"github.com/acpgo/sdk/acp/rpc"
)

type addition struct {
	A int `json:"a"`
	B int `json:"b"`
}

// Two ends of a connection with a method outside the protocol.
func Example() {
	serving, calling := rpc.Pipe()
	ctx := context.Background()

	ext := &rpc.Extensions[rpc.Conn]{}
	rpc.Handle(ext, "_example.com/add", func(_ context.Context, _ *rpc.Conn, p *addition) (*int, error) {
		sum := p.A + p.B
		return &sum, nil
	})
	server, err := rpc.Connect(ctx, serving, ext, nil)
	if err != nil {
		log.Fatal(err)
	}
	client, err := rpc.Connect(ctx, calling, nil, nil)
	if err != nil {
		log.Fatal(err)
	}

	sum, err := rpc.Call[int](ctx, client, "_example.com/add", &addition{A: 1, B: 2})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(*sum)

	if err := client.Close(); err != nil {
		log.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		log.Fatal(err)
	}
	// Output: 3
}
