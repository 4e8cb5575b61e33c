package mcpacp_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/internal/gen/api"
)

var update = flag.Bool("update", false, "write api.txt anew")

func TestAPI(t *testing.T) {
	const path = "github.com/acpgo/sdk/contrib/mcpacp"
	imports, err := api.Importer(".", path)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := imports.Import(path)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(api.Lines(pkg), "\n") + "\n"
	if *update {
		if err := os.WriteFile("api.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile("api.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("api.txt is not what the package exports; make generate writes it (-old +new):\n%s", diff)
	}
}
