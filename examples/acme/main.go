// Command acme shows a vendor's own methods: vendor.json describes them, package vendoracp is generated from
// that, and this program serves and calls them. It is a module of its own, as a vendor's is.
//
//	acme FOLDER     starts itself as an agent, and has it index the folder
//	acme -agent     is that agent, over standard input and output
package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"example.com/acme/vendoracp"
	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/acp/rpc"
)

// The methods, with the types of their parameters and results.
var (
	index    = rpc.RequestMethod[vendoracp.IndexRequest, vendoracp.IndexResponse]{Name: vendoracp.MethodIndex}
	progress = rpc.NotificationMethod[vendoracp.IndexProgressNotification]{Name: vendoracp.MethodIndexProgress}
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: acme FOLDER | acme -agent")
	}
	run := func(ctx context.Context) error { return call(ctx, os.Args[1], os.Stdout) }
	if os.Args[1] == "-agent" {
		run = serve
	}
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// serve is the agent, until its client closes the connection.
func serve(ctx context.Context) error {
	ext := &rpc.Extensions[rpc.Conn]{}
	rpc.HandleMethod(ext, index, func(ctx context.Context, client *rpc.Conn, req *vendoracp.IndexRequest) (*vendoracp.IndexResponse, error) {
		return indexFolder(req, func(e vendoracp.IndexEvent) error {
			return progress.Notify(ctx, client, &vendoracp.IndexProgressNotification{SessionID: req.SessionID, Event: e})
		})
	})
	conn, err := rpc.Connect(ctx, rpc.Stdio(), ext, nil)
	if err != nil {
		return err
	}
	return conn.Wait()
}

// languages are the languages of the files that are indexed.
var languages = map[string]vendoracp.Language{".go": vendoracp.LanguageGo, ".ts": vendoracp.LanguageTypescript, ".json": "json"}

// indexFolder counts the files of each language and tells of each file.
func indexFolder(req *vendoracp.IndexRequest, tell func(vendoracp.IndexEvent) error) (*vendoracp.IndexResponse, error) {
	res := &vendoracp.IndexResponse{Files: map[string]vendoracp.FileCount{}}
	left, limited := req.MaxFiles.Get()
	err := fs.WalkDir(os.DirFS(req.Root), ".", func(path string, _ fs.DirEntry, err error) error {
		language, known := languages[filepath.Ext(path)]
		if err != nil || !known {
			return err
		}
		if limited && left == 0 {
			if err := tell(vendoracp.NewIndexEventLimit()); err != nil {
				return err
			}
			return fs.SkipAll
		}
		left--
		res.Files[string(language)]++
		return tell(vendoracp.NewIndexEventFile(vendoracp.IndexedFile{Path: path, Language: language}))
	})
	if err != nil {
		return nil, rpc.Public(err)
	}
	return res, nil
}

// call is the client.
func call(ctx context.Context, folder string, out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	root, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	ext := &rpc.Extensions[rpc.Conn]{}
	rpc.HandleNotificationMethod(ext, progress, func(_ context.Context, _ *rpc.Conn, n *vendoracp.IndexProgressNotification) error {
		return show(out, n.Event)
	})
	agent, err := rpc.Connect(ctx, rpc.Command(exec.Command(self, "-agent")), ext, nil)
	if err != nil {
		return err
	}
	defer agent.Close()
	res, err := index.Call(ctx, agent, &vendoracp.IndexRequest{SessionID: "1", Root: root, MaxFiles: codec.Some[uint32](3)})
	if err != nil {
		return err
	}
	for _, language := range slices.Sorted(maps.Keys(res.Files)) {
		fmt.Fprintln(out, language, res.Files[language])
	}
	return agent.Close()
}

// show prints an event of a kind that is known.
func show(out io.Writer, event vendoracp.IndexEvent) error {
	var err error
	switch e := event.Variant.(type) {
	case *vendoracp.IndexEventFile:
		_, err = fmt.Fprintln(out, "indexed", e.Path, e.Language)
	case *vendoracp.IndexEventLimit:
		_, err = fmt.Fprintln(out, "that is enough")
	}
	return err
}
