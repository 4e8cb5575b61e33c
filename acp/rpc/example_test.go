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

// watched is a transport that shows what passes.
type watched struct{ rpc.Transport }

func (t watched) Connect(ctx context.Context) (rpc.Stream, error) {
	stream, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return rpc.Wrap(stream, rpc.Wrapper{
		Read: func(next func() ([]byte, error), _ func()) ([]byte, error) {
			message, err := next()
			if err == nil {
				fmt.Printf("received %s\n", message)
			}
			return message, err
		},
		Write: func(message []byte) ([]byte, error) {
			fmt.Printf("sent     %s\n", message)
			return message, nil
		},
	}), nil
}

// A wrapper sees each message once, however it is written.
func ExampleWrap() {
	serving, calling := rpc.Pipe()
	ctx := context.Background()

	server, err := rpc.Connect(ctx, serving, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	client, err := rpc.Connect(ctx, watched{calling}, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := rpc.Call[int](ctx, client, "_example.com/add", &addition{A: 1, B: 2}); err != nil {
		fmt.Println(err)
	}
	if err := client.Close(); err != nil {
		log.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// sent     {"jsonrpc":"2.0","id":1,"method":"_example.com/add","params":{"a":1,"b":2}}
	// received {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found","data":{"method":"_example.com/add"}}}
	// _example.com/add: Method not found (-32601): {"method":"_example.com/add"}
}
