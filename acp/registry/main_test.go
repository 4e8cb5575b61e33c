package registry_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp/registry"
)

// TestMain is a process that installs an agent too.
func TestMain(m *testing.M) {
	if url := os.Getenv("REGISTRY_TEST_URL"); url != "" {
		c := &registry.Client{
			URL: url, Dir: os.Getenv("REGISTRY_TEST_DIR"), Platform: "linux-x86_64",
			Consent: func(context.Context, *registry.Plan) error { return nil },
		}
		if _, err := c.Refresh(context.Background()); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		i, err := c.Install(context.Background(), os.Getenv("REGISTRY_TEST_ID"), nil)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(i.Folder())
		return
	}
	goleak.VerifyTestMain(tests{m})
}

// tests closes the connections that http keeps for later.
type tests struct{ *testing.M }

func (m tests) Run() int {
	code := m.M.Run()
	http.DefaultClient.CloseIdleConnections()
	return code
}
