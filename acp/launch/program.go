package launch

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// look examines the directory and the program. It returns false if there is nothing to start.
func (d *Diagnosis) look() bool {
	c := d.Command
	if c.Dir != "" {
		if info, err := os.Stat(c.Dir); err != nil || !info.IsDir() {
			d.blocked(FolderMissing, err, "", "the folder %s, in which it is to start, is not there", c.Dir)
			return false
		}
	}
	path, err := c.Find()
	if err != nil {
		d.notFound(err)
		return false
	}
	d.Program = path
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		d.blocked(NotExecutable, nil, "", "%s is not a file: %s", path, info.Mode())
		return false
	}
	head := make([]byte, 512)
	file, err := os.Open(path)
	if err != nil {
		return true // it may still be possible to run it
	}
	defer file.Close()
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	head = head[:n]
	if line, ok := bytes.CutPrefix(head, []byte("#!")); ok {
		line, _, _ = bytes.Cut(line, []byte("\n"))
		if !d.interpreted(string(line)) {
			return false
		}
	} else {
		d.binary = slices.ContainsFunc(magic, func(m string) bool { return bytes.HasPrefix(head, []byte(m)) })
		if loader := loader(file, head); loader != "" {
			if _, err := os.Stat(loader); errors.Is(err, fs.ErrNotExist) {
				d.blocked(InterpreterMissing, err,
					"The program is made for another C library (musl or glibc); there may be another build of it.",
					"%s is loaded by %s, which is not there", path, loader)
				return false
			}
		}
	}
	return true
}

// notFound explains why Find found nothing.
func (d *Diagnosis) notFound(err error) {
	c := d.Command
	switch {
	case errors.Is(err, fs.ErrPermission):
		d.blocked(NotExecutable, err, "chmod +x makes a program executable.", "%s is there, but may not be run", c.Program)
	case filepath.Base(c.Program) != c.Program:
		d.blocked(ProgramMissing, err, "", "there is no program %s", c.Program)
	default:
		advice := "Install it, or give its path."
		if tool := toolOf[c.Program]; tool != "" {
			advice = fmt.Sprintf("It comes with %s.", tool)
		}
		where := "PATH is empty"
		if dirs := c.searched(); len(dirs) > 0 {
			where = "looked for in " + strings.Join(dirs, ", ")
		}
		d.blocked(ProgramMissing, err, advice, "there is no program %s: %s", c.Program, where)
	}
}

// toolOf maps programs to what the user must install to get them.
var toolOf = map[string]string{
	"node": "Node.js", "npm": "Node.js", "npx": "Node.js", "uv": "uv (docs.astral.sh/uv)", "uvx": "uv (docs.astral.sh/uv)",
	"bunx": "Bun", "deno": "Deno", "docker": "Docker",
}

// interpreted checks whether the interpreter that the first line of a script names exists.
func (d *Diagnosis) interpreted(line string) bool {
	words := strings.Fields(line)
	if len(words) == 0 || runtime.GOOS == "windows" {
		return true
	}
	if strings.HasSuffix(line, "\r") {
		d.blocked(NotExecutable, nil, "Write the file with the line ends of Unix.",
			"the first line of %s ends with a carriage return, which the system takes for a part of %q", d.Program,
			words[len(words)-1])
		return false
	}
	if _, err := os.Stat(words[0]); errors.Is(err, fs.ErrNotExist) {
		d.blocked(InterpreterMissing, err, "", "%s is run by %s, which is not there", d.Program, words[0])
		return false
	}
	if filepath.Base(words[0]) == "env" {
		words = words[1:]
		for len(words) > 0 && (strings.HasPrefix(words[0], "-") || strings.Contains(words[0], "=")) {
			words = words[1:]
		}
		if len(words) == 0 {
			return true
		}
		name := words[0]
		interpreter := *d.Command
		interpreter.Program = name
		if _, err := interpreter.Find(); err != nil {
			advice := ""
			if tool := toolOf[name]; tool != "" {
				advice = "Install " + tool + ", or put its folder into PATH."
			}
			d.blocked(InterpreterMissing, err, advice, "%s is run by %s, which is not in PATH: looked for in %s", d.Program,
				name, strings.Join(d.Command.searched(), ", "))
			return false
		}
	}
	return true
}

// magic are the beginnings of programs for Linux and other Unix systems, Windows and macOS.
var magic = []string{elf.ELFMAG, "MZ", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe"}

// loader returns the dynamic loader of a Linux program, or "" if it has none.
func loader(file io.ReaderAt, head []byte) string {
	if runtime.GOOS != "linux" || !bytes.HasPrefix(head, []byte(elf.ELFMAG)) {
		return ""
	}
	f, err := elf.NewFile(file)
	if err != nil {
		return ""
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP && p.Filesz < 4096 {
			text, err := io.ReadAll(p.Open())
			if err != nil {
				return ""
			}
			return strings.TrimRight(string(text), "\x00")
		}
	}
	return ""
}
