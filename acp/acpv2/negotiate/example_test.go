package negotiate_test

import (
	"context"
	"fmt"
	"log"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/negotiate"
)

// A client that prefers version 2 meets an agent that speaks both, and one that speaks version 1 only.
func Example() {
	for _, agent := range []negotiate.Agent{agent("1 and 2"), agent("1")} {
		near, far := acp.Pipe()
		served := make(chan error, 1)
		go func() { served <- agent.Serve(context.Background(), far) }()

		var v1 *acp.ClientConn
		var v2 *acpv2.ClientConn
		info := acp.Implementation{Name: "example", Version: "1.0"}
		version, err := negotiate.Client{
			V1: func(ctx context.Context, transport acp.Transport) (err error) {
				v1, err = acp.Connect(ctx, transport, acp.ClientHandlers{}, &acp.ClientOptions{Info: info})
				return err
			},
			V2: func(ctx context.Context, transport acp.Transport) (err error) {
				v2, err = acpv2.Connect(ctx, transport, acpv2.ClientHandlers{}, &acpv2.ClientOptions{
					Info: acpv2.Implementation{Name: info.Name, Version: info.Version},
				})
				return err
			},
		}.Connect(context.Background(), near)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("version", version)
		if version == 2 {
			err = v2.Close()
		} else {
			err = v1.Close()
		}
		if err != nil {
			log.Fatal(err)
		}
		if err := <-served; err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// version 2
	// version 1
}
