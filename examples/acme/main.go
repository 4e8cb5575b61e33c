// Command acme shows a vendor's own methods alongside those of the protocol, on one connection: vendor.json describes
// them, package vendoracp is generated from it, and the agent and the client of this program serve and call them. It is
// a separate module, as a vendor's would be.
//
//	acme FOLDER     starts itself as an agent, asks it to index the folder, and asks it what is there
//	acme -agent     is that agent, over standard input and output
package main

import (
	"context"
	"log"
	"os"

	"github.com/acpgo/sdk/acp/view"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: acme FOLDER | acme -agent")
	}
	var err error
	if os.Args[1] == "-agent" {
		err = serve(context.Background())
	} else {
		err = ask(context.Background(), os.Args[1], os.Stdout)
	}
	if err != nil {
		log.Fatal(view.PrintableLine(err.Error()))
	}
}
