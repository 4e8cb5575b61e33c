//go:build !windows

package launch_test

import (
	"context"
	"fmt"

	"github.com/acpgo/sdk/acp/launch"
)

func ExampleDoctor() {
	command := &launch.Command{Program: "my-agent", Args: []string{"--acp"}, Env: map[string]string{"PATH": "/opt/agents"}}
	d := launch.Doctor(context.Background(), command, nil)
	fmt.Println(d.OK())
	for _, p := range d.Problems {
		fmt.Println(p)
	}
	// Output:
	// false
	// program missing: there is no program my-agent: looked for in /opt/agents
	//   Install it, or give its path.
}
