package registry_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/acpgo/sdk/acp/registry"
)

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"version":"1.0.0","agents":[{"id":"my-agent","name":"My agent","version":"1.2.3","description":"It writes code.",
			"distribution":{"binary":{%q:{"archive":"http://%s/1.2.3/my-agent","cmd":"./my-agent","args":["--acp"]}}}}]}`, registry.Platform(), r.Host)
	}))
	defer server.Close()
	dir, err := os.MkdirTemp("", "agents-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	agents := &registry.Client{URL: server.URL, Dir: dir, Consent: func(_ context.Context, plan *registry.Plan) error {
		fmt.Println("install", plan.Entry.Name, plan.Entry.Version, "as", plan.Kind) // ask the user here, and show plan.String()
		return nil
	}}
	list, err := agents.List(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(len(list.Search("code")), "found")
	installed, err := agents.Install(context.Background(), "my-agent", nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(installed.Command().Args) // acp.Command(installed.Command().Cmd()) is its transport
	// Output:
	// 1 found
	// install My agent 1.2.3 as binary
	// [--acp]
}
