package launch

import (
	"bytes"
	"context"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// look examines the directory and the program. It returns false if there is nothing to start.
func (d *Diagnosis) look(ctx context.Context) bool {
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
		d.foreign = foreign(file, head)
		if loader := loader(file, head); loader != "" {
			if _, err := os.Stat(loader); errors.Is(err, fs.ErrNotExist) {
				d.blocked(InterpreterMissing, err,
					"The program is made for another C library (musl or glibc); there may be another build of it.",
					"%s is loaded by %s, which is not there", path, loader)
				return false
			}
		}
	}
	d.lookAtNode(ctx)
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
	name := words[0]
	if filepath.Base(name) == "env" {
		words = words[1:]
		for len(words) > 0 && (strings.HasPrefix(words[0], "-") || strings.Contains(words[0], "=")) {
			words = words[1:]
		}
		if len(words) == 0 {
			return true
		}
		name = words[0]
		interpreter := *d.Command
		interpreter.Program = name
		path, err := interpreter.Find()
		if err != nil {
			advice := ""
			if tool := toolOf[name]; tool != "" {
				advice = "Install " + tool + ", or put its folder into PATH."
			}
			d.blocked(InterpreterMissing, err, advice, "%s is run by %s, which is not in PATH: looked for in %s", d.Program,
				name, strings.Join(d.Command.searched(), ", "))
			return false
		}
		name = path
	}
	if base := filepath.Base(name); base == "node" || base == "nodejs" {
		d.node, d.script = name, d.Program
	}
	return true
}

// lookAtNode compares the version of Node.js with the one that the program's package requires. A mismatch does not
// block: the agent may work nevertheless.
func (d *Diagnosis) lookAtNode(ctx context.Context) {
	if name := strings.TrimSuffix(filepath.Base(d.Program), ".exe"); d.node == "" && (name == "node" || name == "nodejs") {
		for _, arg := range d.Command.Args {
			if !strings.HasPrefix(arg, "-") {
				if !filepath.IsAbs(arg) {
					arg = filepath.Join(d.Command.Dir, arg)
				}
				d.node, d.script = d.Program, arg
				break
			}
		}
	}
	if d.node == "" {
		return
	}
	wanted := engine(d.script)
	if wanted == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.node, "--version")
	cmd.Env, cmd.WaitDelay = d.Command.environment(), time.Second
	out, err := cmd.Output()
	if err != nil {
		return // starting it will show the problem
	}
	have := strings.TrimSpace(string(out))
	if in, known := inRange(have, wanted); known && !in {
		d.add(Problem{
			Kind: WrongNode, Text: fmt.Sprintf("the package needs Node.js %s, and %s is %s", wanted, d.node, short(have)),
			Advice: "Install that version, or put its folder first in PATH.",
		})
	}
}

// versionTime bounds how long node may take to print its version.
const versionTime = 10 * time.Second

// foreign returns the other system or processor that a program is built for, or "" if it is built for this one or
// cannot be recognized.
func foreign(file io.ReaderAt, head []byte) string {
	made := func(system, processor string) string {
		if system == runtime.GOOS && processor == runtime.GOARCH {
			return ""
		}
		return system + " on " + processor
	}
	name := func(names map[string]string, key fmt.Stringer) string {
		if name := names[key.String()]; name != "" {
			return name
		}
		return key.String()
	}
	switch {
	case bytes.HasPrefix(head, []byte(elf.ELFMAG)):
		f, err := elf.NewFile(file)
		if err != nil {
			return ""
		}
		processor := name(map[string]string{"EM_X86_64": "amd64", "EM_AARCH64": "arm64", "EM_386": "386", "EM_ARM": "arm",
			"EM_RISCV": "riscv64"}, f.Machine)
		system := "linux" // most programs do not name theirs
		if runtime.GOOS != "darwin" && runtime.GOOS != "windows" {
			system = runtime.GOOS
		}
		return made(system, processor)
	case bytes.HasPrefix(head, []byte("MZ")):
		f, err := pe.NewFile(file)
		if err != nil {
			return ""
		}
		processor := map[uint16]string{pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_ARM64: "arm64",
			pe.IMAGE_FILE_MACHINE_I386: "386"}[f.Machine]
		return made("windows", processor)
	}
	processors := map[string]string{"CpuAmd64": "amd64", "CpuArm64": "arm64"}
	if f, err := macho.NewFile(file); err == nil {
		return made("darwin", name(processors, f.Cpu))
	}
	if f, err := macho.NewFatFile(file); err == nil {
		for _, arch := range f.Arches {
			if made("darwin", name(processors, arch.Cpu)) == "" {
				return ""
			}
		}
		return "darwin"
	}
	return ""
}

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
