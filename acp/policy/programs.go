// This file owns programs that run others: which ones run a command that their arguments are, and which ones make a
// command of text. The lists have what is in use; a program that is not known runs nothing, for all that is known here.

package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// set is a set of words.
func set(words ...string) map[string]bool {
	all := map[string]bool{}
	for _, some := range words {
		for word := range strings.FieldsSeq(some) {
			all[word] = true
		}
	}
	return all
}

// shellWrappers are those wrappers that may run what a shell has built in.
var shellWrappers = set("- builtin command exec nocorrect noglob time")

// wrappers are commands whose arguments are commands.
var wrappers = set(
	"- builtin command exec jobs nocorrect noglob time",
	// Other users, roots, systems and limits.
	"arch bwrap caffeinate capsh cgexec choom chpst chroot chrt coresched cpulimit doas enosys fakechroot fakeroot firejail gosu gsudo",
	"i386 ionice linux32 linux64 nice nsenter numactl pkexec prlimit proot run0 runas runcon runuser schroot setarch setpriv setsid",
	"setuidgid softlimit su-exec sudo systemd-inhibit systemd-nspawn systemd-run taskset uclampset uname26 unshare winpty wsl x86_64",
	// Input, output, time and more than once.
	"busybox catchsegv ccache chronic cross-env daemon daemonize dbus-launch dbus-run-session distcc dotenv dotenvx dumb-init eatmydata",
	"entr env envdir fd fdfind find flock gpg-agent gtimeout ifne ltrace nohup parallel pipesz proxychains proxychains4 rlwrap rr",
	"sccache script setlock ssh-agent sshpass start-stop-daemon stdbuf strace systemd-cat timeout tini torify torsocks toybox trickle",
	"bunx npx pnpx uvx tsocks unbuffer valgrind watch watchexec xargs xcrun xtrace xvfb-run",
	"alacritty datefudge dpkg-architecture fakeroot-sysv fakeroot-tcp faketime foot fstab-decode gdbserver gksudo gnome-terminal",
	"gp-collect-app gtime heaptrack kdesu kitty konsole logsave luit memusage mpiexec mpirun msgexec msgfilter multitime not please",
	"sotruss srun sudo-rs torchrun uftrace wine wine64 x-terminal-emulator x86_64-linux-gnu-gp-collect-app xterm",
	"ld-linux-aarch64.so.1 ld-linux-x86-64.so.2 ld-linux.so.2 ld-musl-aarch64.so.1 ld-musl-x86_64.so.1 ld.so",
)

// dispatchers are such commands of which the first argument is the name of something that they do themselves: tools for
// packages, versions, secrets and containers. What comes later may be a command, somewhere, or anything else.
var dispatchers = set(
	"asdf aws-vault bun bundle chamber cmake conda deno direnv docker docker-compose doppler hatch incus infisical ip kubectl lerna",
	"lxc mamba micromamba mise nerdctl nix npm nx oc op pdm perf pipenv pipx pnpm podman poetry rye turbo uv vagrant yarn",
)

// shells are commands whose arguments, or whose input, are lines for a shell, here or elsewhere.
var shells = set(
	". ash at bash batch cmd crontab csh dash elvish emulate eval expect fc fish hist ksh lksh m4 mksh mosh nu osascript pdsh",
	"powershell pwsh rbash rsh screen sh slogin source sqlite ssh su tcsh tmux trap xonsh yash zsh",
)

// builtins are commands of shells that set variables, or what a name stands for, or that run text.
var builtins = set(
	"alias autoload bind bindkey compctl compgen complete declare emulate enable export fc float functions getopts hash hist",
	"integer let local mapfile nameref read readarray readonly sched setopt shopt typeset unalias vared zle zmodload",
)

// calculators are commands of shells that take some arguments for arithmetic, in which a subscript may run a command.
var calculators = set(
	"[ break continue exit kill logout print printf return set shift suspend test ulimit umask unset wait whence",
)

// textRunners make a command of text whatever their options are, or run a shell when they are told nothing.
var textRunners = set(
	"chroot concurrently fakechroot fakeroot firejail hyperfine linux32 linux64 mispipe newgrp nix-shell",
	"nodemon nsenter parallel pee pkexec proot runuser schroot screen script sem setarch sg sops su tmux",
	"uname26 unshare watch watchexec",
)

// textOptions are the options of a program that make a command of text.
type textOptions struct {
	short, long string // short ones are letters
	takes       string // short options that have an argument
	operands    int    // before the command
	anywhere    bool   // options may be behind operands
	bundled     bool   // the first word is short options, also without a "-"
}

var editor = textOptions{short: "cS", long: "--cmd --remote-expr --remote-send", takes: "ituUVwWT", anywhere: true}

// runText has programs that are not to be allowed by their name when they make a command of text.
var runText = map[string]textOptions{
	"ack":         {long: "--pager", anywhere: true},
	"ag":          {long: "--pager", anywhere: true},
	"apt":         {short: "oc", long: "--option --config-file", anywhere: true},
	"apt-get":     {short: "oc", long: "--option --config-file", anywhere: true},
	"bat":         {long: "--pager", anywhere: true},
	"batcat":      {long: "--pager", anywhere: true},
	"bsdtar":      {long: "--use-compress-program", anywhere: true},
	"cargo":       {long: "--config", anywhere: true},
	"doas":        {short: "s", takes: "aCu"},
	"entr":        {short: "s", anywhere: true},
	"env":         {short: "S", long: "--split-string", takes: "aCLPuU"},
	"ex":          editor,
	"flock":       {short: "c", long: "--command", takes: "Ew", operands: 1},
	"gtar":        tarOptions,
	"fzf":         {long: "--bind --preview", anywhere: true},
	"hg":          {long: "--config", anywhere: true},
	"install":     {long: "--strip-program", anywhere: true},
	"jj":          {long: "--config --config-file --config-toml", anywhere: true},
	"jobs":        {short: "x"},
	"man":         {short: "PH", long: "--pager --html", takes: "CLMReSsprT", anywhere: true},
	"nc":          {short: "ec", anywhere: true},
	"ncat":        {short: "ec", long: "--exec --sh-exec --lua-exec", anywhere: true},
	"netcat":      {short: "ec", anywhere: true},
	"npm":         {short: "c", long: "--call --script-shell", operands: 1},
	"npx":         {short: "c", long: "--call --script-shell", takes: "p"},
	"nvim":        editor,
	"pnpm":        {short: "c", long: "--shell-mode --script-shell", operands: 1},
	"print":       {short: "v"},
	"printf":      {short: "v"},
	"rg":          {long: "--pre --hostname-bin", anywhere: true},
	"rsync":       {short: "e", long: "--rsh --rsync-path", takes: "fBTM@", anywhere: true},
	"scp":         {short: "S", anywhere: true},
	"set":         {short: "A"},
	"sftp":        {short: "SD", anywhere: true},
	"sort":        {long: "--compress-program", anywhere: true},
	"split":       {long: "--filter", anywhere: true},
	"sudo":        {short: "is", long: "--shell --login", takes: "aCcDghpRrTtUu"},
	"svn":         {long: "--config-option --diff-cmd --diff3-cmd --editor-cmd", anywhere: true},
	"systemd-run": {short: "S", long: "--shell", takes: "CEHMpptu", anywhere: true},
	"tar":         tarOptions,
	"tcpdump":     {short: "z", takes: "BcCEFGijmMrsTVwWyQZ", anywhere: true},
	"vi":          editor, "view": editor, "vim": editor, "vimdiff": editor,
	"wait": {short: "p"},
	"wget": {long: "--use-askpass", anywhere: true},
	// What is read in place of a word may be the command's name.
	"xargs": {short: "IiJ", long: "--replace", takes: "adELnPRSs"},
	"zip":   {short: "T", long: "--unzip-command", anywhere: true},
}

var tarOptions = textOptions{
	short: "FI", long: "--to-command --checkpoint-action --use-compress-program --rsh-command --info-script --new-volume-script --rmt-command",
	takes: "bCfgHKLNTVX", anywhere: true, bundled: true,
}

// textOf has programs whose options are not enough to tell.
var textOf = map[string]func(words []word) bool{
	"fd": foundRuns, "fdfind": foundRuns, "find": foundRuns,
	"awk": awkRuns, "gawk": awkRuns, "mawk": awkRuns, "nawk": awkRuns, "original-awk": awkRuns,
	"gsed": sedRuns, "sed": sedRuns,
	"gh": storesCommand, "glab": storesCommand, "npm": storesCommand, "pnpm": storesCommand, "yarn": storesCommand,
	"git": gitRuns, "go": goRuns,
	"scp": sshRuns, "sftp": sshRuns, "ssh": sshRuns,
	"socat":  func(words []word) bool { return anyText(words, socatAddress) },
	"strace": func(words []word) bool { return anyText(words, straceOutput) },
	"ex":     plusRuns, "nvim": plusRuns, "vi": plusRuns, "view": plusRuns, "vim": plusRuns, "vimdiff": plusRuns,
}

// programs has interpreters of languages that take a program as an argument. Who allows an interpreter allows any program;
// a rule that restricts does not know what it does.
var programs = map[string]textOptions{
	"bun":     {short: "ep", long: "--eval --print"},
	"dc":      {short: "e", long: "--expression"},
	"elixir":  {short: "e", long: "--eval"},
	"emacs":   {short: "fl", long: "--eval --execute --funcall --load", anywhere: true},
	"gdb":     {short: "ex", long: "--eval-command --init-eval-command --command", anywhere: true},
	"ghc":     {short: "e"},
	"groovy":  {short: "e"},
	"julia":   {short: "eE", long: "--eval --print"},
	"lldb":    {short: "oOsS", long: "--one-line --source", anywhere: true},
	"lua":     {short: "e"},
	"luajit":  {short: "e"},
	"mariadb": {short: "e", long: "--execute", anywhere: true},
	"mysql":   {short: "e", long: "--execute", anywhere: true},
	"node":    {short: "ep", long: "--eval --print", takes: "rC"},
	"nodejs":  {short: "ep", long: "--eval --print", takes: "rC"},
	"octave":  {long: "--eval", anywhere: true},
	"perl":    {short: "eEMm", takes: "ICF"},
	"php":     {short: "BERr", long: "--run --process-begin --process-code --process-end", takes: "cdz"},
	"psql":    {short: "c", long: "--command", anywhere: true},
	"pypy":    {short: "c", takes: "mWX"},
	"python":  {short: "c", takes: "mWX"},
	"rscript": {short: "e"},
	"ruby":    {short: "e", takes: "CEIrK"},
	"ts-node": {short: "ep", long: "--eval --print"},
	"raku":    {short: "e"},
	"tsx":     {short: "ep", long: "--eval --print"},
}

// maxWrapped bounds the words after a wrapper that are looked at: the time grows with the square of their number.
const maxWrapped = 1000

// programName is a command's name without its folder, in lower case.
func programName(text string) string {
	return strings.TrimSuffix(path.Base(slashed(fold(text))), ".exe")
}

// program is the name under which a program is in the lists here: that of perl5.36 is perl.
func program(name string) string {
	for _, list := range []map[string]bool{wrappers, dispatchers, shells, builtins, calculators, textRunners} {
		if list[name] {
			return name
		}
	}
	if _, ok := runText[name]; ok {
		return name
	}
	if i := strings.IndexAny(name, "0123456789"); i > 0 {
		return strings.TrimRight(name[:i], "-.")
	}
	return name
}

// isProgram reports whether the first of some words is an interpreter that is given a program.
func isProgram(words []word) bool {
	options, ok := programs[program(programName(words[0].text))]
	return ok && options.in(words[1:])
}

// runsText reports whether a command, or one that a wrapper is to run, makes a command of text, or may.
func (c command) runsText() bool {
	if len(c.words) == 0 {
		return false
	}
	wraps := wrappers[c.programs[0]]
	if wraps && len(c.words) > maxWrapped {
		return true
	}
	return c.textFrom(0, wraps)
}

// textFrom looks for programs that make a command of text: the one at a word, or one of those from there on.
func (c command) textFrom(from int, all bool) bool {
	inShell, subscripts := true, anyText(c.words, subscript)
	clean := map[string]bool{} // what was looked at in all words behind
	for i := from; i < len(c.words) && (all || i == from); i++ {
		if i > 0 {
			inShell = shellWrappers[c.programs[0]] // otherwise what a shell has built in is not meant
		}
		name, rest := c.programs[i], c.words[i+1:]
		if inShell && (builtins[name] || calculators[name] && subscripts) || textRunners[name] {
			return true
		}
		if options, ok := runText[name]; ok && options.in(rest) {
			return true
		}
		if runs := textOf[name]; runs != nil && !clean[name] {
			if runs(rest) {
				return true
			}
			clean[name] = name != "git" && name != "sed" && name != "gsed"
		}
	}
	return false
}

// subscript is one that runs a command.
var subscript = regexp.MustCompile("(?s)\\[.*[$`]")

// anyText reports whether a pattern is in one of some words.
func anyText(words []word, pattern *regexp.Regexp) bool {
	return slices.ContainsFunc(words, func(w word) bool { return pattern.MatchString(w.text) })
}

// in reports whether one of the options is, or may be, among the words after the program's name.
func (o textOptions) in(words []word) bool {
	operands, argument := o.operands, false
	for i, w := range words {
		text := w.text
		if o.bundled && i == 0 && !strings.HasPrefix(text, "-") {
			text = "-" + text
		}
		switch {
		case !w.literal:
			return true
		case text == "--" && o.operands == 0:
			return false
		case strings.HasPrefix(text, "--"):
			name, _, hasValue := strings.Cut(text, "=")
			for long := range strings.FieldsSeq(o.long) {
				if len(name) > 2 && strings.HasPrefix(long, name) { // it may be shortened
					return true
				}
			}
			argument = !hasValue
		case strings.HasPrefix(text, "-"):
			argument = false
			for i, letter := range text[1:] {
				if strings.ContainsRune(o.short, letter) {
					return true
				}
				if strings.ContainsRune(o.takes, letter) {
					argument = i+2 == len(text)
					break
				}
			}
		case argument:
			argument = false
		case o.anywhere:
		case operands == 0:
			return false
		default:
			operands--
		}
	}
	return false
}

// foundRuns reports whether find is to run what it finds.
func foundRuns(words []word) bool {
	for i := range words[:max(len(words)-1, 0)] {
		option := words[i].text
		runs := strings.HasPrefix(option, "-exec") || strings.HasPrefix(option, "-ok") || strings.HasPrefix(option, "--exec") ||
			option == "-x" || option == "-X"
		if runs && strings.Contains(words[i+1].text, "{") {
			return true
		}
	}
	return false
}

// awkCommand is what runs a command in a program for awk, or a function that is not named, which may be such a one.
var awkCommand = regexp.MustCompile(`system|@|(^|[^|])\|([^|]|$)`)

// awkFile is an option that names a file with a program, or with functions. The file may be what comes through a pipe.
var awkFile = regexp.MustCompile(`^-[^-vF]*[filE]|^--(fil|i|lo|e)`)

func awkRuns(words []word) bool {
	return slices.ContainsFunc(words, func(w word) bool {
		return !w.literal || awkCommand.MatchString(w.text) || awkFile.MatchString(w.text)
	})
}

var (
	// sedSubstitution is one command s of a script, with flags that run nothing.
	sedSubstitution = regexp.MustCompile(`^s(?:/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/|\|(?:[^|\\\n]|\\.)*\|(?:[^|\\\n]|\\.)*\||#(?:[^#\\\n]|\\.)*#(?:[^#\\\n]|\\.)*#|,(?:[^,\\\n]|\\.)*,(?:[^,\\\n]|\\.)*,)[gpiI0-9]*`)
	// sedAddress is an address, and sedCommand a command without text.
	sedAddress = regexp.MustCompile(`^[ \t]*(?:(?:[0-9]+|\$|/(?:[^/\\\n]|\\.)*/)(?:[ \t]*,[ \t]*(?:\+?[0-9]+|\$|/(?:[^/\\\n]|\\.)*/))?)?[ \t]*!?[ \t]*`)
	sedCommand = regexp.MustCompile(`^[dDgGhHnNpPqx=]`)
	sedEnd     = regexp.MustCompile(`^[ \t]*(?:[;\n]|$)`)
	sedFlags   = regexp.MustCompile(`^-[nErsuz]+i?$`)
)

// sedRuns reports whether sed may run commands: if it is told more than scripts of the simple forms.
func sedRuns(words []word) bool {
	scripts, files, operands := []string{}, false, false
	for i := 0; i < len(words); i++ {
		w := words[i]
		text := w.text
		switch {
		case !w.literal && !files:
			return true
		case operands:
			if !files {
				scripts, files = append(scripts, text), true
			}
		case text == "--":
			operands = true
		case text == "--sandbox":
			return false
		case text == "-e" || text == "--expression":
			if i++; i == len(words) || !words[i].literal {
				return true
			}
			scripts, files = append(scripts, words[i].text), true
		case strings.HasPrefix(text, "--expression="):
			scripts, files = append(scripts, text[len("--expression="):]), true
		case !strings.HasPrefix(text, "-"):
			if !files {
				scripts, files = append(scripts, text), true
			}
		case slices.Contains([]string{"-n", "-E", "-r", "-i", "-s", "-u", "-z", "-i.bak", "--in-place", "--quiet", "--silent", "--regexp-extended", "--null-data"}, text):
		case sedFlags.MatchString(text):
		default:
			return true
		}
	}
	return slices.ContainsFunc(scripts, func(script string) bool { return !simpleSed(script) })
}

func simpleSed(script string) bool {
	for script != "" {
		script = script[len(sedAddress.FindString(script)):]
		command := sedSubstitution.FindString(script)
		if command == "" {
			command = sedCommand.FindString(script)
		}
		script = script[len(command):]
		end := sedEnd.FindStringIndex(script)
		if end == nil {
			return false
		}
		script = script[end[1]:]
	}
	return true
}

// gitSettings are settings of git that run nothing.
var gitSettings = regexp.MustCompile(`(?i)^(advice\.|color\.|core\.(quotepath|autocrlf|abbrev|ignorecase|filemode)(=|$)|user\.(name|email)(=|$)|(commit|tag)\.gpgsign=false$|init\.defaultbranch=)`)

// gitShort are the short options of commands of git that run text.
var gitShort = map[string]string{"clone": "cu", "rebase": "x", "grep": "O", "difftool": "x"}

func gitRuns(words []word) bool {
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case !w.literal:
			return true
		case w.text == "-c":
			if i++; i == len(words) || !words[i].literal || !gitSettings.MatchString(words[i].text) {
				return true
			}
		case strings.HasPrefix(w.text, "-c"), strings.HasPrefix(w.text, "--config-env"), strings.HasPrefix(w.text, "--exec-path="):
			return true
		case slices.Contains([]string{"-C", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--attr-source"}, w.text):
			i++
		case !strings.HasPrefix(w.text, "-"):
			return gitCommandRuns(w.text, words[i+1:])
		}
	}
	return false
}

// gitCommandRuns reports whether a command of git runs text.
func gitCommandRuns(name string, words []word) bool {
	has := func(texts ...string) bool {
		return slices.ContainsFunc(words, func(w word) bool { return slices.Contains(texts, w.text) })
	}
	switch name {
	case "config": // it may set an alias, or a pager
		return !gitReadsConfig(words)
	case "filter-branch", "for-each-repo", "instaweb", "merge-index", "remote-ext", "send-email", "web--browse":
		return true
	case "submodule", "submodule--helper":
		return has("foreach")
	case "bisect", "bisect--helper":
		return has("run", "bisect-run", "--bisect-run")
	}
	options := textOptions{
		short: gitShort[name], anywhere: true,
		long: "--upload-pack --receive-pack --exec --extcmd --open-files-in-pager --template --access-hook",
	}
	if name == "clone" || name == "init" || name == "fetch" || name == "pull" || name == "submodule" {
		options.long += " --config"
	}
	for _, w := range words {
		if strings.Contains(fold(w.text), "ext::") {
			return true
		}
		if w.literal && strings.HasPrefix(w.text, "-") && options.in([]word{w}) {
			return true
		}
	}
	return false
}

// gitReadsConfig reports whether git config only shows settings. What it does must come first: behind other words, "list"
// may be a value.
func gitReadsConfig(words []word) bool {
	for _, w := range words {
		switch w.text {
		case "--global", "--local", "--system", "--worktree":
			continue
		}
		return slices.Contains([]string{"--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list"}, w.text)
	}
	return false
}

// goRuns reports whether go runs a program that an option names, or stores such options.
func goRuns(words []word) bool {
	stores := anyText(words, goEnv) && anyText(words, goStores)
	return stores || anyText(words, goOption)
}

// storesCommand reports whether a program is told to store what it is to run when it is called by another name, or a
// setting, which may name a program.
func storesCommand(words []word) bool {
	for _, w := range words[:min(len(words), 2)] {
		if !w.literal {
			return true
		}
	}
	return anyText(words, storing) && anyText(words, stored)
}

var (
	socatAddress = regexp.MustCompile(`(?i)(exec|system|shell):`)
	straceOutput = regexp.MustCompile(`[|!]`) // -o '|command'
	goOption     = regexp.MustCompile(`^--?(exec|toolexec|vettool)(=|$)|-extld\b`)
	goEnv        = regexp.MustCompile(`^env$`)
	goStores     = regexp.MustCompile(`^--?w$`)
	storing      = regexp.MustCompile(`^(set|import|edit)$`)
	stored       = regexp.MustCompile(`^(alias|config|conf|c|set)$`)
	sshOption    = regexp.MustCompile(`(?i)(proxy|local|knownhosts)command`)
	plusOption   = regexp.MustCompile(`^\+[^0-9]`)
)

// sshRuns reports whether ssh is told to run something on this machine.
func sshRuns(words []word) bool {
	return anyText(words, sshOption)
}

// plusRuns reports whether an editor is given a command.
func plusRuns(words []word) bool { return anyText(words, plusOption) }

// known completes a command of words with what patterns that restrict are compared with.
func known(words []word) command {
	c := command{words: words}
	if len(words) == 0 {
		return c
	}
	for _, w := range words {
		c.folded = append(c.folded, word{fold(w.text), w.literal})
		name := programName(w.text)
		c.names, c.programs = append(c.names, word{name, w.literal}), append(c.programs, program(name))
	}
	if !words[0].literal {
		return c
	}
	name := c.programs[0]
	c.hides = shells[name] || isProgram(words)
	switch {
	case c.hides:
		return c
	case wrappers[name]:
		c.wraps = 1
	case dispatchers[name]:
		c.wraps = 2
		if len(words) > 1 && !words[1].literal {
			c.wraps = 1
		}
	default:
		return c
	}
	c.hides = len(words) > maxWrapped || dispatchers[name] && c.textFrom(c.wraps, true)
	for i := c.wraps; i < len(words) && !c.hides; i++ {
		c.hides = !words[i].literal || shells[c.programs[i]] || isProgram(words[i:])
	}
	return c
}

// touches reports whether a pattern that restricts, which was folded, matches a command: its name with or without folders,
// in upper or lower case, or a command that another one is to run.
func touches(pattern []string, c command) verdict {
	best := match(pattern, c.folded)
	if best == yes || len(c.words) == 0 || !c.words[0].literal {
		return max(best, no)
	}
	if best = max(best, c.matchAt(pattern, 0)); best == yes {
		return yes
	}
	if c.hides {
		return maybe
	}
	for i := c.wraps; i > 0 && i < len(c.words); i++ {
		if match(pattern, c.folded[i:]) != no || c.matchAt(pattern, i) != no {
			return maybe
		}
	}
	return best
}

// matchAt compares a pattern with the words from i on, of which the first is a name without its folder.
func (c command) matchAt(pattern []string, i int) verdict {
	if first := match(pattern[:1], c.names[i:i+1]); first != yes || pattern[0] == anyWords {
		return first
	}
	return match(pattern[1:], c.folded[i+1:])
}

func folded(texts []string) []string {
	folded := make([]string, len(texts))
	for i, text := range texts {
		folded[i] = fold(text)
	}
	return folded
}
