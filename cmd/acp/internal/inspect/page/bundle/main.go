// Command bundle makes the files of the page: it joins the TypeScript with esbuild, and writes the folder dist of the
// current directory.
package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	log.SetFlags(0)
	files, err := bundle(".")
	if err != nil {
		log.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join("dist", name), text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// bundle returns the files of dist, made of the sources in a directory. The same sources give the same bytes.
func bundle(dir string) (map[string][]byte, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: root,
		EntryPointsAdvanced: []api.EntryPoint{
			{InputPath: "main.ts", OutputPath: "app"},
			{InputPath: "page.css", OutputPath: "app"},
		},
		Outdir:            root, // names the outputs; nothing is written
		Bundle:            true,
		Format:            api.FormatIIFE,
		Target:            api.ES2023,
		Charset:           api.CharsetASCII,
		MinifyWhitespace:  true,
		MinifySyntax:      true,
		MinifyIdentifiers: true,
		LogLevel:          api.LogLevelSilent,
	})
	var errs []error
	for _, m := range append(result.Errors, result.Warnings...) {
		at := ""
		if m.Location != nil {
			at = fmt.Sprintf("%s:%d: ", m.Location.File, m.Location.Line)
		}
		errs = append(errs, errors.New(at+m.Text))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	index, err := os.ReadFile(filepath.Join(root, "index.html"))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"index.html": index}
	for _, f := range result.OutputFiles {
		files[filepath.Base(f.Path)] = f.Contents
	}
	return files, nil
}
