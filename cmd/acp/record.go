package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/conformance/recording/relay"
	"github.com/acpgo/sdk/conformance/report"
	"github.com/acpgo/sdk/internal/plain"
)

// recordFlags are the flags of acp record.
type recordFlags struct {
	file                             string
	overwrite, stderr, noMask, check bool
	level                            levelFlag
}

// newRecordCommand returns the command acp record.
func newRecordCommand(p *program) *cobra.Command {
	f := &recordFlags{level: newLevelFlag(conformance.ShouldNot)}
	c := &cobra.Command{
		Use:   "record [FLAGS] -o FILE -- AGENT [ARG...]",
		Short: "Record the traffic between an editor and an agent",
		Long: `Record the traffic between an editor and an agent. Start it in place of the agent; it starts the agent.

Every byte is passed on unchanged, both ways, as it arrives. It ends as the agent does, with its exit status or by
the same signal, and passes on the signals that it gets. Secrets are masked in the file: values of environment
variables and headers, authentication, tokens in URLs, keys of known shapes. The text of prompts and answers is kept.

If the file exists, the agent does not start, unless --overwrite is given. An editor or a test suite may start the
agent many times, and each start needs a file of its own. In the name of the file

  %n  is the first number, counting from 1, for which there is no file yet (not with --overwrite)
  %t  is the time, such as 20261123-200819
  %p  is the process id
  %%  is a percent sign

If the file cannot be written to the end, the agent keeps running, and standard error says so.`,
		Example: `  acp record -o run.jsonl -- my-agent --acp
  acp record --check -o /tmp/run-%n.jsonl -- npx my-agent`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(_ *cobra.Command, args []string) error {
			if f.file == "" || len(args) == 0 {
				return usagef("expected -o FILE and the agent's command")
			}
			if f.overwrite && strings.Contains(strings.ReplaceAll(f.file, "%%", ""), "%n") {
				return usagef("--overwrite and %%n cannot be combined: %%n is the number of a file that does not exist")
			}
			return record(p, f, args)
		},
	}
	flags := c.Flags()
	flags.SetInterspersed(false) // the agent's flags are its own
	flags.StringVarP(&f.file, "output", "o", "",
		"the `FILE` to write, with %n, %t or %p in its name if the agent starts several times")
	flags.BoolVar(&f.overwrite, "overwrite", false, "replace the file if it exists")
	flags.BoolVar(&f.stderr, "stderr", false, "also record the lines of the agent's standard error")
	flags.BoolVar(&f.noMask, "no-mask", false, "do not mask secrets")
	flags.BoolVar(&f.check, "check", false, "judge the traffic, and report violations of the protocol on standard error")
	flags.Var(&f.level, "level", "with --check: the lowest `LEVEL` that is reported: must, should or advice")
	complete(c, "level", levelNames...)
	return c
}

// record runs the agent. It returns only if the agent did not start.
func record(p *program, f *recordFlags, command []string) (err error) {
	file, created, err := createRecording(f.file, f.overwrite)
	if err != nil {
		return err
	}
	defer func() {
		failed := err != nil
		err = errors.Join(err, file.Close())
		if failed && created { // otherwise it would keep the next start from recording
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	out := bufio.NewWriterSize(file, 64<<10)
	check := &liveCheck{}
	if f.check {
		if check, err = startCheck(p.stderr, file.Name(), f.level.level); err != nil {
			return err
		}
	}
	var masker *recording.Masker
	if !f.noMask {
		masker = recording.NewMasker()
	}
	header := recording.Header{Tool: "acp", Version: moduleVersion(), Command: command}
	writer, err := recording.NewWriter(io.MultiWriter(out, check), header, masker)
	if err != nil {
		check.end()
		return err
	}
	signals, stop := relay.Notify()
	defer stop()
	result, err := relay.Run(exec.Command(command[0], command[1:]...), relay.Options{
		Stdin: closer(p.stdin), Stdout: writeCloser(p.stdout), Stderr: p.stderr,
		Signals: signals, Writer: writer, RecordStderr: f.stderr, Idle: out.Flush,
	})
	if err != nil {
		check.end()
		return err
	}
	if err := errors.Join(result.Err, file.Close()); err != nil {
		fmt.Fprintln(p.stderr, plain.Sprintf("acp: the recording is not complete: %v", err))
	}
	if result.Lost > 0 {
		fmt.Fprintf(p.stderr, "acp: the recording is not complete: %d bytes arrived too fast\n", result.Lost)
	}
	if err := check.end(); err != nil {
		fmt.Fprintln(p.stderr, plain.Sprintf("acp: not fully judged: %v", err))
	}
	relay.Exit(result.State)
	return nil
}

// createRecording creates the file of a recording, and reports whether it did not exist before. Pipes and devices, such
// as /dev/null, may exist.
func createRecording(pattern string, overwrite bool) (file *os.File, created bool, err error) {
	began := time.Now().Format("20060102-150405")
	named := func(n int) string {
		return strings.NewReplacer("%%", "%", "%n", strconv.Itoa(n), "%t", began, "%p", strconv.Itoa(os.Getpid())).
			Replace(pattern)
	}
	for n := 1; ; n++ {
		name := named(n)
		flag := os.O_EXCL
		info, err := os.Stat(name)
		exists := err == nil
		if overwrite || exists && !info.Mode().IsRegular() {
			flag = os.O_TRUNC
		}
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|flag, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return file, !exists, err
		}
		if named(n+1) == name {
			return nil, false, fmt.Errorf("%s exists: put %%n into the name to get a file for each start, or use --overwrite",
				name)
		}
	}
}

// closer adds a Close that does nothing to a reader that has none.
func closer(r io.Reader) io.ReadCloser {
	if c, ok := r.(io.ReadCloser); ok {
		return c
	}
	return io.NopCloser(r)
}

func writeCloser(w io.Writer) io.WriteCloser {
	if c, ok := w.(io.WriteCloser); ok {
		return c
	}
	return struct {
		io.Writer
		io.Closer
	}{w, io.NopCloser(nil)}
}

// liveCheck judges a recording while it is being written. The zero value ignores what is written to it.
type liveCheck struct {
	to      *io.PipeWriter
	report  *report.Report
	running sync.WaitGroup
	err     error
}

// startCheck begins to judge. It reports findings on standard error.
func startCheck(stderr io.Writer, name string, level conformance.Level) (*liveCheck, error) {
	r, err := report.New(report.Options{Version: moduleVersion(), Level: level})
	if err != nil {
		return nil, err
	}
	from, to := io.Pipe()
	c := &liveCheck{to: to, report: r}
	live := r.Live(stderr, &report.TextOptions{})
	source := r.Source(name)
	c.running.Go(func() {
		c.err = source.Check(from, &report.CheckOptions{OnFinding: live.Write})
		_ = from.Close() // always nil
		if c.err == nil {
			c.err = live.End()
		}
	})
	return c, nil
}

// Write never fails: if the judge fails, the recording continues.
func (c *liveCheck) Write(b []byte) (int, error) {
	if c.to != nil {
		_, _ = c.to.Write(b)
	}
	return len(b), nil
}

// findings returns the number of findings at the end.
func (c *liveCheck) findings() int {
	if c.report == nil {
		return 0
	}
	return c.report.Findings()
}

// end waits until everything has been judged.
func (c *liveCheck) end() error {
	if c.to == nil {
		return nil
	}
	_ = c.to.Close() // always nil
	c.running.Wait()
	return c.err
}
