package sessionstore_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
)

// A session is made, something is said in it, and another program reads it.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "sessions")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := sessionstore.Open(dir, nil) // sessionstore.DefaultDir has a better place
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	now := time.Now()
	info := sessionstore.Info{ID: "sess_1", Cwd: "/work", Title: "Greetings", Created: now, Updated: now}
	if err := store.Create(ctx, sessionstore.Record{Info: info}); err != nil {
		log.Fatal(err)
	}
	if err := store.Append(ctx, "sess_1", acp.UserMessageText("Hello"), acp.AgentMessageText("Hi!")); err != nil {
		log.Fatal(err)
	}
	page, err := store.List(ctx, sessionstore.Query{Cwd: "/work"})
	if err != nil {
		log.Fatal(err)
	}
	for _, info := range page.Sessions {
		fmt.Println(info.ID, info.Title)
		for update, err := range store.Updates(ctx, info.ID) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(update)
		}
	}
	// Output:
	// sess_1 Greetings
	// {"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"Hello"}}
	// {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hi!"}}
}
