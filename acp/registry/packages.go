package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/internal/proc"
)

// placePackage installs a package into the directory of a version, and returns the path of its command.
func (c *Client) placePackage(ctx context.Context, p *Plan, i *Installed) (string, error) {
	run := *p.Install
	run.Env = maps.Clone(run.Env)
	if run.Env == nil {
		run.Env = map[string]string{}
	}
	// In a separate directory no project settings apply, which others may have written.
	run.Dir = i.Folder()
	if p.Kind == NPX {
		run.Args = slices.Insert(slices.Clone(run.Args), 1, "--prefix", i.Folder())
	} else {
		run.Env["UV_TOOL_DIR"] = filepath.Join(i.Folder(), "tools")
		run.Env["UV_TOOL_BIN_DIR"] = filepath.Join(i.Folder(), "bin")
	}
	output, err := runWhole(ctx, &run)
	if err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		failed := &InstallError{ID: p.Entry.ID, Package: p.Package, Output: output, Err: err}
		if problem, ok := launch.Explain(output); ok {
			if problem.Kind == launch.TooNew {
				problem.Advice += otherKind(p)
			}
			problem.Err = err
			failed.Problem = problem
		}
		return "", failed
	}
	if p.Kind == UVX {
		return uvCommand(i.Folder(), p)
	}
	path, err := npmCommand(i.Folder(), p)
	// Windows ignores the first line of a script.
	i.Script = err == nil && runtime.GOOS == "windows" && isScript(filepath.Join(i.Folder(), path))
	return path, err
}

// isScript reports whether a file is a script for node.
func isScript(name string) bool {
	file, err := os.Open(name)
	if err != nil {
		return false
	}
	defer file.Close()
	head := make([]byte, 200)
	n, _ := io.ReadFull(file, head) // as much as there is
	line, _, _ := bytes.Cut(head[:n], []byte("\n"))
	return bytes.HasPrefix(line, []byte("#!")) && bytes.Contains(line, []byte("node"))
}

// otherKind mentions the binary of an entry that has one.
func otherKind(p *Plan) string {
	if len(p.Entry.Distribution.Binary) > 0 {
		return " This agent has binaries: install it with the kind binary."
	}
	return " For this agent alone, install it with the option AnyAge."
}

// npmCommand finds the command of a package as npx does: the named one, the only one, or the one with the package's
// name.
func npmCommand(dir string, p *Plan) (string, error) {
	name, _ := splitPackage(NPX, p.Package)
	folder := filepath.Join(dir, "node_modules", filepath.FromSlash(name))
	text, err := readFile(filepath.Join(folder, "package.json"), 8<<20)
	if err != nil {
		return "", fmt.Errorf("the package %s: %w", p.Package, err)
	}
	var pkg struct {
		Version string
		Bin     json.RawMessage
	}
	if err := json.Unmarshal(text, &pkg); err != nil {
		return "", fmt.Errorf("the package %s: package.json: %w", p.Package, err)
	}
	if pkg.Version != p.Entry.Version {
		return "", fmt.Errorf("npm installed %s %q instead of %s", name, short(pkg.Version), p.Entry.Version)
	}
	own := name[strings.LastIndex(name, "/")+1:]
	bins := map[string]string{}
	var one string
	if json.Unmarshal(pkg.Bin, &one) == nil && one != "" {
		bins[own] = one
	} else if len(pkg.Bin) > 0 {
		if err := json.Unmarshal(pkg.Bin, &bins); err != nil {
			return "", fmt.Errorf("the package %s: bin of package.json: %w", p.Package, err)
		}
	}
	cmd := p.Program
	if cmd == "" {
		files := slices.Compact(slices.Sorted(maps.Values(bins)))
		switch {
		case bins[own] != "":
			cmd = own
		case len(files) == 1:
			cmd = slices.Sorted(maps.Keys(bins))[0]
		default:
			return "", fmt.Errorf("the package %s has no command of the same name, only %q, and the entry names none", p.Package,
				slices.Sorted(maps.Keys(bins)))
		}
	}
	script := bins[cmd]
	if script == "" { // it may belong to a package that this one depends on
		link := filepath.Join("node_modules", ".bin", filepath.FromSlash(cmd))
		if _, err := os.Stat(filepath.Join(dir, link)); err != nil || runtime.GOOS == "windows" || !filepath.IsLocal(cmd) {
			return "", fmt.Errorf("the package %s has no command %q, only %q", p.Package, short(cmd),
				slices.Sorted(maps.Keys(bins)))
		}
		return link, nil
	}
	path := filepath.Join("node_modules", filepath.FromSlash(name), filepath.FromSlash(script))
	if !filepath.IsLocal(filepath.FromSlash(script)) {
		return "", fmt.Errorf("the package %s has its command %q outside its directory: %q", p.Package, short(cmd),
			short(script))
	}
	if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
		return "", fmt.Errorf("the package %s: its command %q: %w", p.Package, short(cmd), err)
	}
	return path, nil
}

// uvCommand finds the command of a PyPI package: the named one, or the one with the package's name.
func uvCommand(dir string, p *Plan) (string, error) {
	name, _ := splitPackage(UVX, p.Package)
	path := filepath.Join("bin", cmp.Or(p.Program, name))
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
		return "", fmt.Errorf("the package %s has no command %q: %w", p.Package, cmp.Or(p.Program, name), err)
	}
	return path, nil
}

// maxOutput is how much of the end of an installer's output is kept.
const maxOutput = 64 << 10

// output keeps the end of the data written to it.
type output struct{ buf []byte }

func (o *output) Write(b []byte) (int, error) {
	o.buf = append(o.buf, b...)
	if over := len(o.buf) - maxOutput; over > 0 {
		o.buf = append(o.buf[:0], o.buf[over:]...)
	}
	return len(b), nil
}

// runWhole runs a command and returns its output. When the context ends, it ends the command with all processes that it
// has started.
func runWhole(ctx context.Context, command *launch.Command) (string, error) {
	cmd := command.Cmd()
	out := &output{}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = time.Second
	group, err := proc.Start(cmd)
	if err != nil {
		return "", err
	}
	defer group.Free()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		group.Kill()
		err = errors.Join(context.Cause(ctx), <-ended)
	}
	group.Reaped()
	group.Kill() // processes that it left running
	return string(bytes.ToValidUTF8(out.buf, []byte("\uFFFD"))), err
}
