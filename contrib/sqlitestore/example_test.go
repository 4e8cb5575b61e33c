package sqlitestore_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/contrib/sqlitestore"
)

func Example() {
	dir, err := os.MkdirTemp("", "sessions")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	store, err := sqlitestore.Open(ctx, filepath.Join(dir, "sessions.db"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	info := sessionstore.Info{ID: "s1", Cwd: "/work", Title: "Greetings", Updated: time.Now()}
	if err := store.Create(ctx, sessionstore.Record{Info: info}); err != nil {
		log.Fatal(err)
	}
	if err := store.Append(ctx, "s1", acp.UserMessageText("hello"), acp.AgentMessageText("Hello!")); err != nil {
		log.Fatal(err)
	}
	for update, err := range store.Updates(ctx, "s1") {
		if err != nil {
			log.Fatal(err)
		}
		if text := update.AgentText(); text != "" {
			fmt.Println(text)
		}
	}
	// Output: Hello!
}
