package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/internal/plain"
	"github.com/acpgo/sdk/internal/wholefile"
)

// Installed is an installed agent.
type Installed struct {
	// Entry is the registry's entry at the time of installation; it includes ID, Name and Version.
	Entry Entry `json:"entry"`
	// Kind is how the agent was installed.
	Kind Kind `json:"kind"`
	// Preview reports whether the version had not been released.
	Preview bool `json:"preview,omitempty"`
	// Time is when the agent was installed.
	Time time.Time `json:"time"`
	// Pinned means that Update keeps the agent at its version.
	Pinned bool `json:"pinned,omitempty"`
	// SHA256 is the checksum of the archive that was fetched, whether or not the registry provided one.
	SHA256 string `json:"sha256,omitempty"`
	// Verified reports whether the registry provided a checksum, which the archive then matched.
	Verified bool `json:"verified,omitempty"`

	// Program is the path of the program in Folder. Args and Env are its arguments and variables.
	Program string            `json:"program"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	// Script means that Program is a script that the system's node runs, as npm's packages on Windows are.
	Script bool `json:"script,omitempty"`

	dir, folder string // dir is the agent's directory, folder the name of the version's directory in it
}

// ID returns the agent's id.
func (i *Installed) ID() string { return i.Entry.ID }

// Folder returns the directory in which the agent was unpacked, or its package installed.
func (i *Installed) Folder() string { return filepath.Join(i.dir, i.folder) }

func (i *Installed) program() string { return filepath.Join(i.Folder(), i.Program) }

// Command returns the command that starts the agent; it may be changed. It needs no network. It starts in the directory
// of this process: the directory in which an agent works is set in the session.
func (i *Installed) Command() *launch.Command {
	c := &launch.Command{Program: i.program(), Args: slices.Clone(i.Args), Env: maps.Clone(i.Env)}
	if i.Script {
		c.Program, c.Args = "node", append([]string{c.Program}, c.Args...)
	}
	return c
}

// InstallError reports that npm or uv could not install a package.
type InstallError struct {
	// ID is the agent's id, and Package is its package.
	ID, Package string
	// Problem describes the failure; its Kind is, for example, launch.TooNew or launch.DownloadFailed, or "" if it is
	// not known.
	Problem launch.Problem
	// Output is the end of the program's output.
	Output string
	// Err reports how the program ended.
	Err error
}

// Error implements the error interface. It includes the program's output without control characters.
func (e *InstallError) Error() string {
	text := fmt.Sprintf("the package %s: ", e.Package)
	switch lines := strings.Split(strings.TrimSpace(e.Output), "\n"); {
	case e.Problem.Kind != "" && e.Problem.Advice != "":
		text += e.Problem.Text + ". " + e.Problem.Advice
	case e.Problem.Kind != "":
		text += e.Problem.Text
	case lines[0] != "":
		text += e.Err.Error() + ": " + short(lines[len(lines)-1])
	default:
		text += e.Err.Error()
	}
	return plain.Line(text)
}

// Unwrap returns Err.
func (e *InstallError) Unwrap() error { return e.Err }

// maxRecord bounds installed.json, in bytes.
const maxRecord = 1 << 20

// record is the name of the file that records the installed version.
const record = "installed.json"

func readRecord(dir, id string) (*Installed, error) {
	text, err := readFile(filepath.Join(dir, record), maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNotInstalled, id)
	}
	if err != nil {
		return nil, err
	}
	file := recordFile{Installed: &Installed{dir: dir}}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w; install it again", filepath.Join(dir, record), err)
	}
	i := file.Installed
	i.folder = file.Folder
	if i.Entry.ID != id || i.folder == "." || !filepath.IsLocal(i.folder) || filepath.Base(i.folder) != i.folder ||
		!filepath.IsLocal(i.Program) {
		return nil, fmt.Errorf("%s is damaged; install the agent again", filepath.Join(dir, record))
	}
	return i, i.complete()
}

// complete returns an error that matches ErrIncomplete if the agent's program is not there.
func (i *Installed) complete() error {
	incomplete := func(path string) error {
		return fmt.Errorf("%w: %s: %s is missing or no program; install it again", ErrIncomplete, i.ID(), path)
	}
	if files, err := os.ReadDir(i.Folder()); err != nil || len(files) == 0 {
		return incomplete(i.Folder())
	}
	info, err := os.Stat(i.program())
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 || runtime.GOOS != "windows" && info.Mode()&0o111 == 0 {
		return incomplete(i.program())
	}
	return nil
}

// recordFile is the content of installed.json.
type recordFile struct {
	*Installed
	Folder string `json:"folder"`
}

func (i *Installed) write() error {
	text, err := json.MarshalIndent(recordFile{i, i.folder}, "", "  ")
	if err != nil {
		return err
	}
	return wholefile.Replace(filepath.Join(i.dir, record), append(text, '\n'), 0o600)
}

// folderOf returns the directory of the installed version, or "" if there is none.
func folderOf(i *Installed) string {
	if i == nil {
		return ""
	}
	return i.folder
}
