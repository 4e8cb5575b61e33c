package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/acpgo/sdk/internal/test/attack/hostile"
)

func files() map[string]attack {
	return map[string]attack{
		"paths":       {run: paths},
		"swaps":       {run: swaps},
		"sparse":      {run: sparse},
		"root-swap":   {run: rootSwap},
		"attributes":  {run: attributes},
		"other-files": {run: otherFiles},
		"owner":       {run: func(*agent, *session) error { return nil }},
	}
}

// read reads a file through the client; content is "" unless ok.
func (a *agent) read(s *session, path string) (content string, ok bool, err error) {
	m, err := a.Call("fs/read_text_file", object("sessionId", s.id, "path", path), hostile.Patience)
	if err != nil || m.Error != nil {
		return "", false, err
	}
	var r struct {
		Content string `json:"content"`
	}
	if m.Long {
		return "", true, nil
	}
	err = json.Unmarshal(m.Result, &r)
	return r.Content, true, err
}

// write writes a file through the client.
func (a *agent) write(s *session, path, content string) (ok bool, err error) {
	m, err := a.Call("fs/write_text_file", object("sessionId", s.id, "path", path, "content", content), hostile.Patience)
	if err != nil {
		return false, err
	}
	return m.Error == nil, nil
}

// leaked notes text that must not be read.
func (a *agent) leaked(how, text string) {
	if a.text != "" && strings.Contains(text, strings.TrimSpace(a.text)) {
		a.Problem("the secret was read: %s", how)
	}
}

// links makes ways out of a directory, and returns their names.
func (a *agent) links(dir string) ([]string, error) {
	outside := filepath.Dir(a.secret)
	relative, err := filepath.Rel(dir, a.secret)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for name, target := range map[string]string{
		"absolute":  a.secret,
		"relative":  relative,
		"dir":       outside,
		"root":      "/",
		"self":      "/proc/self/cwd",
		"fd":        "/proc/self/fd",
		"magic":     "/proc/self/root" + a.secret,
		"loop":      "loop",
		"first":     "second",
		"second":    "third",
		"third":     a.secret,
		"up":        "..",
		"zero":      "/dev/zero",
		"tty":       "/dev/tty",
		"dangling":  filepath.Join(outside, "made"),
		"dangling2": "../made",
		"absin":     filepath.Join(dir, "inside.txt"),
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// mayWrite reports whether a write to a path can change nothing but what the driver has made for the attack. An attack
// that succeeds must not damage the machine that it is tried on.
func (a *agent) mayWrite(path string) bool {
	own := filepath.Dir(filepath.Dir(a.secret))
	path = filepath.Clean(strings.ReplaceAll(path, "\x00", ""))
	if !filepath.IsAbs(path) {
		return false
	}
	for range 40 { // links, of which each may lead on
		dir := path
		for {
			real, err := filepath.EvalSymlinks(dir)
			if err == nil {
				if real != own && !strings.HasPrefix(real, own+string(filepath.Separator)) {
					return false
				}
				break
			}
			if dir == filepath.Dir(dir) {
				return false
			}
			dir = filepath.Dir(dir)
		}
		target, err := os.Readlink(path)
		if err != nil {
			return true
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = filepath.Clean(target)
	}
	return true // a loop
}

// paths tries ways out of the directories of the session, and what must not be waited for.
func paths(a *agent, s *session) error {
	names, err := a.links(s.cwd)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.cwd, "inside.txt"), nil, 0o600); err != nil {
		return err
	}
	if err := errors.Join(fifo(filepath.Join(s.cwd, "fifo")), os.MkdirAll(filepath.Join(s.cwd, "sub"), 0o700)); err != nil {
		return err
	}
	file, outside := filepath.Base(a.secret), filepath.Dir(a.secret)
	relative, err := filepath.Rel(s.cwd, a.secret)
	if err != nil {
		return err
	}
	list := []string{
		a.secret, "/etc/passwd", "/proc/self/environ", "/proc/self/mem", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/fd/0", "/dev/fd/1",
		"", ".", "..", "/", "//", "~", "~/.ssh/id_rsa", "file://" + a.secret, relative,
		s.cwd, s.cwd + "/", s.cwd + "/.", s.cwd + "/..", s.cwd + "/" + relative, s.cwd + "/sub/../" + relative,
		s.cwd + "/./" + relative, s.cwd + "//" + relative, s.cwd + "/sub/./../" + relative, s.cwd + "x/../" + relative,
		s.cwd + "/up/" + filepath.Base(outside) + "/" + file, s.cwd + "/dir/" + file, s.cwd + "/root" + a.secret,
		s.cwd + "/self/x", s.cwd + "/fd/0", s.cwd + "/fd/1", s.cwd + "/fifo", s.cwd + "/fifo/x",
		s.cwd + "/inside.txt/", s.cwd + "/inside.txt/x", s.cwd + "/inside.txt\x00.txt", a.secret + "\x00", s.cwd + "/\x00",
		s.cwd + "/" + strings.Repeat("d/", 5000) + "x", s.cwd + "/" + strings.Repeat("n", 300), s.cwd + "/" + strings.Repeat("../", 100) + a.secret[1:],
		s.cwd + "\\..\\" + relative, s.cwd + "/..\\" + relative, s.cwd + "/%2e%2e/" + relative, s.cwd + "/\u2025/" + relative,
		s.cwd + "/..;/" + relative, s.cwd + "/sub/.. /" + relative, "/../.." + a.secret, "/." + a.secret,
	}
	for _, name := range names {
		list = append(list, filepath.Join(s.cwd, name), filepath.Join(s.cwd, name)+"/"+file, filepath.Join(s.cwd, "sub")+"/../"+name)
	}
	read, wrote := 0, 0
	for _, path := range list {
		text, ok, err := a.read(s, path)
		if err != nil {
			return fmt.Errorf("reading %q: %w", path, err)
		}
		read += btoi(ok)
		a.leaked(fmt.Sprintf("by the path %.300q", path), text)
		if strings.Contains(text, "root:x:0") {
			a.Problem("/etc/passwd was read by the path %.300q", path)
		}
		if a.mayWrite(path) {
			wrote++
			if _, err := a.write(s, path, "overwritten by the agent\n"); err != nil {
				return fmt.Errorf("writing %q: %w", path, err)
			}
		}
		m, err := a.Call("terminal/create", object("sessionId", s.id, "command", "true", "cwd", path), hostile.Patience)
		if err != nil {
			return fmt.Errorf("a command in %q: %w", path, err)
		}
		if m.Error == nil {
			id, err := terminalID(m)
			if err != nil {
				return err
			}
			clean := filepath.Clean(path)
			if real, err := filepath.EvalSymlinks(clean); err == nil && real != s.cwd && !strings.HasPrefix(real, s.cwd+"/") {
				a.Problem("a command starts in %.300q, which is %q", path, real)
			}
			if _, err := a.Call("terminal/release", object("sessionId", s.id, "terminalId", id), hostile.Patience); err != nil {
				return err
			}
		}
	}
	a.Note("%d paths, %d of them could be read; %d were to be written too", len(list), read, wrote)
	for _, made := range []string{filepath.Join(outside, "made"), filepath.Join(filepath.Dir(s.cwd), "made")} {
		if _, err := os.Lstat(made); !errors.Is(err, fs.ErrNotExist) {
			a.Problem("%s was made through a link", made)
		}
	}
	return a.leftovers(s.cwd)
}

// leftovers notes files that the client has left behind.
func (a *agent) leftovers(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what was made to be in the way
		}
		if strings.HasPrefix(d.Name(), ".acp-") {
			a.Problem("a temporary file was left: %s", path)
		}
		return nil
	})
}

// swaps exchanges a directory for a link out of the root while files in it are read and written.
func swaps(a *agent, s *session) error {
	real, link := filepath.Join(s.cwd, "real"), filepath.Join(s.cwd, "d")
	if err := os.MkdirAll(real, 0o700); err != nil {
		return err
	}
	name := filepath.Base(a.secret)
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			os.Remove(link)
			switch i % 3 {
			case 0:
				os.Symlink(filepath.Dir(a.secret), link)
			case 1:
				os.Symlink("real", link)
			case 2:
				os.Rename(real, link)
				os.WriteFile(filepath.Join(link, name), []byte("inside"), 0o600)
				os.Rename(link, real)
			}
		}
	})
	defer swapping.Wait()
	defer close(stop)
	n := a.size(1000, 40_000)
	const together = 8
	read, written := 0, 0
	for done := 0; done < n; done += together {
		reads, err := a.flood(together, "fs/read_text_file", func(int) string { return object("sessionId", s.id, "path", filepath.Join(link, name)) })
		if err != nil {
			return err
		}
		writes, err := a.flood(together, "fs/write_text_file", func(int) string {
			return object("sessionId", s.id, "path", filepath.Join(link, name), "content", "overwritten by the agent")
		})
		if err != nil {
			return err
		}
		for i := range reads {
			m, err := hostile.Await(reads[i], hostile.Patience)
			if err != nil {
				return err
			}
			read += btoi(m.Error == nil)
			a.leaked("while a directory was exchanged for a link", string(m.Result))
			if m, err = hostile.Await(writes[i], hostile.Patience); err != nil {
				return err
			}
			written += btoi(m.Error == nil)
		}
	}
	a.Note("%d of %d rounds read, %d wrote", read, n, written)
	if read+written == 0 {
		return errors.New("no round got through: nothing was tried")
	}
	for _, dir := range []string{s.cwd, filepath.Dir(a.secret)} {
		if err := a.leftovers(dir); err != nil {
			return err
		}
	}
	return nil
}

// soon is how long an ordinary request may take while another one is large.
const soon = 10 * time.Second

// sparse reads a file without end by its lines, and writes through a link meanwhile. Other requests must not wait.
func sparse(a *agent, s *session) error {
	path := filepath.Join(s.cwd, "sparse")
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	size := int64(8) << 40
	for err = file.Truncate(size); err != nil && size > 1<<30; err = file.Truncate(size) {
		size /= 2 // not every file system has such large files
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	defer os.Remove(path)
	a.Note("a file of %d GiB", size>>30)
	link := filepath.Join(s.cwd, "link")
	if err := errors.Join(os.WriteFile(filepath.Join(s.cwd, "target"), nil, 0o600), os.Symlink("target", link)); err != nil {
		return err
	}
	var ids []string
	var answers []<-chan *hostile.Message
	start := func(method, params string) error {
		id, answer, err := a.Go(method, params)
		ids, answers = append(ids, id), append(answers, answer)
		return err
	}
	for range 3 {
		if err := start("fs/read_text_file", object("sessionId", s.id, "path", path, "line", 4_000_000_000, "limit", 1)); err != nil {
			return err
		}
		if err := start("fs/write_text_file", object("sessionId", s.id, "path", link, "content", "x")); err != nil {
			return err
		}
	}
	other := filepath.Join(s.cwd, "other.txt")
	if err := os.WriteFile(other, []byte("x"), 0o600); err != nil {
		return err
	}
	for i := range 20 {
		_, answer, err := a.Go("fs/read_text_file", object("sessionId", s.id, "path", other))
		if err != nil {
			return err
		}
		if _, err := hostile.Await(answer, soon); err != nil {
			a.Problem("a small file cannot be read while a large one is (round %d): %v", i, err)
			break
		}
	}
	for i, id := range ids {
		if err := a.Notify("$/cancel_request", `{"requestId":`+id+`}`); err != nil {
			return err
		}
		if _, err := hostile.Await(answers[i], soon); err != nil {
			a.Problem("a request that was cancelled: %v", err)
			break
		}
	}
	return nil
}

// rootSwap puts another directory in the place of the session's. Files and commands must both be in the one, or both
// in the other.
func rootSwap(a *agent, s *session) error {
	moved := s.cwd + ".moved"
	if err := os.WriteFile(filepath.Join(s.cwd, "who"), []byte("old"), 0o600); err != nil {
		return err
	}
	if err := os.Rename(s.cwd, moved); err != nil {
		return err
	}
	defer func() { // for the turn that follows
		if err := errors.Join(os.RemoveAll(s.cwd), os.Rename(moved, s.cwd)); err != nil {
			a.Problem("%v", err)
		}
	}()
	if err := errors.Join(os.Mkdir(s.cwd, 0o700), os.WriteFile(filepath.Join(s.cwd, "who"), []byte("new"), 0o600)); err != nil {
		return err
	}
	text, _, err := a.read(s, filepath.Join(s.cwd, "who"))
	if err != nil {
		return err
	}
	for _, request := range []string{
		`{"sessionId":` + hostile.Quote(s.id) + `,"command":"cat","args":["who"]}`,
		`{"sessionId":` + hostile.Quote(s.id) + `,"command":"cat","args":["who"],"cwd":` + hostile.Quote(s.cwd) + `}`,
	} {
		m, err := a.Call("terminal/create", request, hostile.Patience)
		if err != nil {
			return err
		}
		if m.Error != nil {
			a.Note("a command is refused: %.80s", m.Error.Message)
			continue
		}
		output, err := a.outputOf(s, m)
		if err != nil {
			return err
		}
		if text != "" && output != text {
			a.Problem("files are those of the %s directory, and commands run in the %s one", text, output)
		}
	}
	a.Note("files: %q", text)
	return nil
}

// attributes writes files that have more than their content.
func attributes(a *agent, s *session) error {
	path := filepath.Join(s.cwd, "attributes.txt")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		return err
	}
	set, err := setAttribute(path, "user.acp", "kept")
	if err != nil {
		return err
	}
	if !set {
		a.Note("this file system has no extended attributes")
	}
	if _, err := a.write(s, path, "new"); err != nil {
		return err
	}
	if got := attribute(path, "user.acp"); set && got != "kept" {
		a.Problem("an extended attribute of a file that was written is lost")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		a.Problem("the mode of a file that was written: %v, %v", info.Mode(), err)
	}
	for i, mode := range []fs.FileMode{fs.ModeSetuid | 0o755, fs.ModeSetgid | 0o755, fs.ModeSetuid | fs.ModeSetgid | 0o777} {
		special := filepath.Join(s.cwd, fmt.Sprint("special-", i))
		link := special + "-link"
		if err := errors.Join(os.WriteFile(special, []byte("#!/bin/sh\n"), 0o700), os.Chmod(special, mode), os.Symlink(filepath.Base(special), link)); err != nil {
			return err
		}
		for _, path := range []string{special, link} {
			if err := os.Chmod(special, mode); err != nil {
				return err
			}
			wrote, err := a.write(s, path, "#!/bin/sh\nid\n")
			if err != nil {
				return err
			}
			info, err := os.Stat(special)
			if err != nil {
				return err
			}
			if wrote && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
				a.Problem("a file has the mode %v after it was written by its name %s", info.Mode(), filepath.Base(path))
			}
		}
	}
	return a.leftovers(s.cwd)
}

// own is what the first of two agents does: it has a file and a terminal.
func (a *agent) own(s *session) error {
	if err := os.WriteFile(filepath.Join(s.cwd, "mine.txt"), []byte("the other agent's"), 0o600); err != nil {
		return err
	}
	m, err := a.Call("terminal/create", `{"sessionId":`+hostile.Quote(s.id)+`,"command":"sleep","args":["1000"]}`, hostile.Patience)
	if err != nil {
		return err
	}
	id, err := terminalID(m)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.cwd, "terminal"), []byte(id), 0o600)
}

// otherFiles is what the second agent does: it names the first one's session, file and terminal.
func otherFiles(a *agent, s *session) error {
	other := filepath.Join(filepath.Dir(s.cwd), "agent0")
	id, err := os.ReadFile(filepath.Join(other, "terminal"))
	if err != nil {
		return err
	}
	for _, name := range []string{s.id, "s-1", "s-2", "s-0", ""} {
		text, ok, err := a.read(&session{id: name}, filepath.Join(other, "mine.txt"))
		if err != nil {
			return err
		}
		if ok {
			a.Problem("the session %q reads another agent's file: %q", name, text)
		}
		if ok, err := a.write(&session{id: name}, filepath.Join(other, "mine.txt"), "taken"); err != nil || ok {
			a.Problem("the session %q writes another agent's file: %v", name, err)
		}
		for _, method := range []string{"terminal/output", "terminal/kill", "terminal/release"} {
			m, err := a.Call(method, object("sessionId", name, "terminalId", string(id)), hostile.Patience)
			if err != nil {
				return err
			}
			if m.Error == nil {
				a.Problem("%s of another agent's terminal succeeds in the session %q", method, name)
			}
		}
	}
	return nil
}
